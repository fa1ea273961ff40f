// SPDX-License-Identifier: BSD-2-Clause
// How the command line of weft_bench is read.
#include "options.h"

#include <CLI/CLI.hpp>
#include <cstdlib>
#include <map>
#include <vector>

namespace weft::bench {
namespace {

const std::map<std::string, Operation> operation_names{
    {"msg", Operation::kMessage},        {"tagged", Operation::kTagged},
    {"rma_write", Operation::kRmaWrite}, {"rma_read", Operation::kRmaRead},
    {"fetch_add", Operation::kFetchAdd}, {"compare_swap", Operation::kCompareSwap}};

const std::map<std::string, EndpointType> endpoint_names{{"rdm", EndpointType::kDatagram},
                                                         {"msg", EndpointType::kConnected}};

const std::map<std::string, Metric> metric_names{{"latency", Metric::kLatency},
                                                 {"poll_latency", Metric::kPollLatency},
                                                 {"rate", Metric::kRate},
                                                 {"bandwidth", Metric::kBandwidth}};

const std::map<std::string, Completion> completion_names{{"default", Completion::kDefault},
                                                         {"inject", Completion::kInject},
                                                         {"transmit", Completion::kTransmit},
                                                         {"delivery", Completion::kDelivery}};

const std::map<std::string, Inject> inject_names{
    {"auto", Inject::kAuto}, {"never", Inject::kNever}, {"always", Inject::kAlways}};

const std::map<std::string, Progress> progress_names{{"manual", Progress::kManual},
                                                     {"auto", Progress::kAuto}};

template <class Value>
const char* find_name(const std::map<std::string, Value>& names, Value value) {
  for (const auto& [name, candidate] : names) {
    if (candidate == value) return name.c_str();
  }
  return "?";
}

void add_measurement(CLI::App& app, Options& options) {
  app.add_option("-p,--provider", options.provider, "libfabric provider, as fi_info names it");
  app.add_option("-o,--operation", options.operation,
                 "msg, tagged, rma_write, rma_read, fetch_add or compare_swap")
      ->transform(CLI::CheckedTransformer(operation_names));
  app.add_option("-e,--endpoint", options.endpoint, "rdm or msg")
      ->transform(CLI::CheckedTransformer(endpoint_names));
  app.add_option("-m,--metric", options.metric, "latency, poll_latency, rate or bandwidth")
      ->transform(CLI::CheckedTransformer(metric_names));
  app.add_option("-s,--size", options.size, "bytes of one message")
      ->check(CLI::Range(std::size_t{1}, std::size_t{1} << 30));
  app.add_option("-w,--window", options.window, "operations in flight (default: by size)");
  app.add_option("--buffers", options.buffers, "distinct buffers to go through")
      ->check(CLI::Range(1, 4096));
  app.add_option("--completion", options.completion, "default, inject, transmit or delivery")
      ->transform(CLI::CheckedTransformer(completion_names));
  app.add_option("--inject", options.inject,
                 "use fi_inject: auto (in latency runs, as far as it fits), never, always")
      ->transform(CLI::CheckedTransformer(inject_names));
  app.add_option("--progress", options.progress, "manual (where there is a choice) or auto")
      ->transform(CLI::CheckedTransformer(progress_names));
}

void add_conduct(CLI::App& app, Options& options) {
  app.add_option("--seconds", options.seconds, "duration of one repetition");
  app.add_option("-r,--repetitions", options.repetitions, "repetitions; the median is reported")
      ->check(CLI::Range(1, 1000));
  app.add_option("-n,--iterations", options.iterations, "fixed count instead of --seconds");
  app.add_option("--time-limit", options.time_limit, "seconds until everything is ended")
      ->check(CLI::Range(1, 3600));
  app.add_option("--address", options.address, "local address to bind");
}

void add_role(CLI::App& app, Options& options, std::string& connect) {
  auto* listen = app.add_option("--listen", options.port, "be the server; control port");
  auto* remote = app.add_option("--connect", connect, "be the client; HOST:PORT of the server");
  auto* self = app.add_flag("--self")->description("one thread sends to its own endpoint");
  auto* list = app.add_flag("--list-providers")->description("print the usable providers, end");
  listen->excludes(remote)->excludes(self)->excludes(list);
  remote->excludes(self)->excludes(list);
  self->excludes(list);
}

Role chosen_role(const CLI::App& app) {
  if (app.count("--listen") > 0) return Role::kServer;
  if (app.count("--connect") > 0) return Role::kClient;
  if (app.count("--self") > 0) return Role::kSelf;
  if (app.count("--list-providers") > 0) return Role::kListProviders;
  return Role::kPair;
}

void split_endpoint(const std::string& text, Options& options) {
  const auto colon = text.rfind(':');
  const unsigned long port =
      colon == std::string::npos ? 0 : std::strtoul(text.c_str() + colon + 1, nullptr, 10);
  if (port == 0 || port > 65535) throw CLI::ValidationError("--connect", "expects HOST:PORT");
  options.host = text.substr(0, colon);
  options.port = static_cast<std::uint16_t>(port);
}

void check_combination(const Options& options) {
  const bool self = options.role == Role::kSelf;
  if (options.metric == Metric::kPollLatency && options.operation != Operation::kRmaWrite) {
    throw CLI::ValidationError("--metric", "poll_latency is for rma_write only");
  }
  const bool counts = options.metric == Metric::kLatency || options.metric == Metric::kRate;
  if (is_atomic(options.operation) && (options.size != 8 || !counts)) {
    throw CLI::ValidationError("--operation", "atomic ones have latency and rate at 8 bytes");
  }
  if (self && (is_one_sided(options.operation) || options.metric != Metric::kLatency)) {
    throw CLI::ValidationError("--self", "measures the latency of msg and tagged only");
  }
  if (self && options.endpoint == EndpointType::kConnected) {
    throw CLI::ValidationError("--self", "has one endpoint: a connection takes two");
  }
}

}  // namespace

Options parse_options(int argc, char** argv) {
  Options options;
  CLI::App app{"Measures a libfabric provider between two processes; prints one line of JSON."};
  std::string connect;
  std::vector<int> cores;
  add_measurement(app, options);
  add_conduct(app, options);
  add_role(app, options, connect);
  auto* cores_option =
      app.add_option("--cores", cores, "cores of server and client")->delimiter(',')->expected(2);
  try {
    app.parse(argc, argv);
    options.role = chosen_role(app);
    if (*cores_option) options.cores = {cores[0], cores[1]};
    if (options.role == Role::kClient) split_endpoint(connect, options);
    check_combination(options);
  } catch (const CLI::ParseError& error) {
    std::exit(app.exit(error));
  }
  if (options.window == 0) options.window = default_window(options.size);
  return options;
}

std::uint64_t default_window(std::size_t size) {
  if (size <= 8192) return 256;
  return size <= (std::size_t{512} << 10) ? 64 : 16;
}

bool is_one_sided(Operation operation) {
  return operation == Operation::kRmaWrite || operation == Operation::kRmaRead ||
         is_atomic(operation);
}

bool is_atomic(Operation operation) {
  return operation == Operation::kFetchAdd || operation == Operation::kCompareSwap;
}

const char* name_of(Operation operation) { return find_name(operation_names, operation); }
const char* name_of(Metric metric) { return find_name(metric_names, metric); }

}  // namespace weft::bench
