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

const std::map<std::string, EndpointType> endpoint_names{{"rdm", EndpointType::kReliable},
                                                         {"msg", EndpointType::kConnected},
                                                         {"dgram", EndpointType::kDatagram}};

const std::map<std::string, Metric> metric_names{
    {"latency", Metric::kLatency}, {"poll_latency", Metric::kPollLatency},
    {"rate", Metric::kRate},       {"bandwidth", Metric::kBandwidth},
    {"connect", Metric::kConnect}, {"mesh", Metric::kMesh}};

const std::map<std::string, Completion> completion_names{{"default", Completion::kDefault},
                                                         {"inject", Completion::kInject},
                                                         {"transmit", Completion::kTransmit},
                                                         {"delivery", Completion::kDelivery}};

const std::map<std::string, Inject> inject_names{
    {"auto", Inject::kAuto}, {"never", Inject::kNever}, {"always", Inject::kAlways}};

const std::map<std::string, Progress> progress_names{{"manual", Progress::kManual},
                                                     {"auto", Progress::kAuto}};

const std::map<std::string, Receive> receive_names{{"single", Receive::kSingle},
                                                   {"multi", Receive::kMulti}};

const std::map<std::string, CountBy> count_by_names{{"queue", CountBy::kQueue},
                                                    {"counters", CountBy::kCounters}};

const std::map<std::string, Threading> threading_names{{"safe", Threading::kSafe},
                                                       {"fid", Threading::kFid},
                                                       {"endpoint", Threading::kEndpoint},
                                                       {"completion", Threading::kCompletion},
                                                       {"domain", Threading::kDomain}};

// The names of an option, for the help text and the messages.
template <class Value>
std::string listed(const std::map<std::string, Value>& names) {
  std::string list;
  for (const auto& [name, value] : names) list += (list.empty() ? "" : ", ") + name;
  return list;
}

// An option whose value is one of NAMES.
template <class Value>
void add_choice(CLI::App& app, const std::string& flags, Value& value, const std::string& what,
                const std::map<std::string, Value>& names) {
  app.add_option(flags, value, what + ": " + listed(names))
      ->transform(CLI::CheckedTransformer(names));
}

template <class Value>
const char* find_name(const std::map<std::string, Value>& names, Value value) {
  for (const auto& [name, candidate] : names) {
    if (candidate == value) return name.c_str();
  }
  return "?";
}

void add_measurement(CLI::App& app, Options& options) {
  app.add_option("-p,--provider", options.provider, "libfabric provider, as fi_info names it");
  add_choice(app, "-o,--operation", options.operation, "what is done", operation_names);
  add_choice(app, "-e,--endpoint", options.endpoint, "type of the endpoints", endpoint_names);
  add_choice(app, "-m,--metric", options.metric, "what is reported", metric_names);
  app.add_option("-s,--size", options.size, "bytes of one message")
      ->check(CLI::Range(std::size_t{1}, std::size_t{1} << 30));
  app.add_option("-w,--window", options.window, "operations in flight (default: by size)");
  app.add_option("--buffers", options.buffers, "distinct buffers to go through")
      ->check(CLI::Range(1, 4096));
  app.add_option("--peers", options.peers, "peers, of which one is active and the others idle")
      ->check(CLI::Range(1, 1024));
}

void add_connections(CLI::App& app, Options& options) {
  app.add_option("--connections", options.connections, "of metric connect, beside the first one")
      ->check(CLI::Range(std::size_t{4}, std::size_t{100'000}));
  app.add_option("--under-way", options.under_way, "connections that a process makes at once")
      ->check(CLI::Range(std::size_t{1}, std::size_t{100'000}));
  app.add_option("--processes", options.processes, "of metric mesh, in a ring")
      ->check(CLI::Range(std::size_t{2}, std::size_t{1000}));
  app.add_option("--reach", options.reach,
                 "next ones of the ring that each process connects to "
                 "(default: half of them, which is all to all)")
      ->check(CLI::Range(std::size_t{1}, std::size_t{999}));
}

void add_manner(CLI::App& app, Options& options) {
  add_choice(app, "--completion", options.completion, "completion level", completion_names);
  add_choice(app, "--inject", options.inject,
             "use fi_inject (auto: in latency runs, as far as it fits)", inject_names);
  add_choice(app, "--progress", options.progress, "progress (manual: where there is a choice)",
             progress_names);
  add_choice(app, "--receive", options.receive, "one message per buffer or many", receive_names);
  add_choice(app, "--count-by", options.count_by, "where completions are seen", count_by_names);
  add_choice(app, "--threading", options.threading, "threading model", threading_names);
  app.add_option("--threads", options.threads, "of --self, each with an endpoint and a queue")
      ->check(CLI::Range(1, 64));
}

void add_conduct(CLI::App& app, Options& options) {
  app.add_option("--seconds", options.seconds, "duration of one repetition");
  app.add_option("-r,--repetitions", options.repetitions, "repetitions; the median is reported")
      ->check(CLI::Range(1, 1000));
  app.add_option("-n,--iterations", options.iterations, "fixed count instead of --seconds");
  app.add_option("--time-limit", options.time_limit, "seconds until everything is ended")
      ->check(CLI::Range(1, 3600));
  app.add_option("--address", options.address, "local address to bind");
  app.add_option("--server-address", options.server_address,
                 "address that the forked server binds (default: --address)");
  app.add_option("--server-network", options.server_network,
                 "network namespace that the forked server moves to, such as /proc/PID/ns/net")
      ->check(CLI::ExistingFile);
}

void add_role(CLI::App& app, Options& options, std::string& connect) {
  auto* listen = app.add_option("--listen", options.port, "be the server; control port");
  auto* remote = app.add_option("--connect", connect, "be the client; HOST:PORT of the server");
  auto* self = app.add_flag("--self")->description("each thread sends to its own endpoint");
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

// A combination that cannot be measured.
struct Refusal {
  bool applies;
  const char* option;
  const char* why;
};

void check_combination(const Options& options) {
  const bool one_sided = is_one_sided(options.operation);
  const bool datagrams = options.endpoint == EndpointType::kDatagram;
  const bool multi = options.receive == Receive::kMulti;
  const bool self = options.role == Role::kSelf;
  const bool latency = options.metric == Metric::kLatency;
  const bool small_metric = latency || options.metric == Metric::kRate;
  const bool plain_message = options.operation == Operation::kMessage;
  const bool forks = options.role == Role::kPair;
  const bool connects = makes_connections(options.metric);
  const bool plain_connection = plain_message && options.endpoint == EndpointType::kConnected;
  const Refusal refusals[] = {
      {options.metric == Metric::kPollLatency && options.operation != Operation::kRmaWrite,
       "--metric", "poll_latency is for rma_write only"},
      {is_atomic(options.operation) && (options.size != 8 || !small_metric), "--operation",
       "atomic ones have latency and rate at 8 bytes"},
      {datagrams && !plain_message, "--endpoint", "dgram is for msg only"},
      {multi && (!plain_message || datagrams), "--receive", "multi is for msg on rdm and msg only"},
      {multi && options.count_by == CountBy::kCounters, "--receive",
       "a counter does not tell which buffer is free again"},
      {multi && options.peers > 1, "--receive", "multi is for one peer"},
      {multi && options.size > kMultiReceiveBytes, "--receive", "multi is for 1 MiB at most"},
      {!forks && !options.server_address.empty(), "--server-address", "is for a forked server"},
      {!forks && !options.server_network.empty(), "--server-network", "is for a forked server"},
      {options.peers > 1 && !forks && options.role != Role::kListProviders, "--peers",
       "more than one are for processes that this one forks"},
      {connects && !plain_connection, "--metric", "connect and mesh are for msg on msg only"},
      {connects && (multi || options.count_by == CountBy::kCounters || options.peers > 1),
       "--metric", "connect and mesh have one queue, one receive each and no idle peers"},
      {options.metric == Metric::kMesh && !forks && options.role != Role::kListProviders,
       "--metric", "mesh is for processes that this one forks"},
      {options.metric == Metric::kMesh && options.reach >= options.processes, "--reach",
       "no process connects to itself"},
      {self && (one_sided || !small_metric), "--self",
       "measures latency and rate of msg and tagged only"},
      {self && options.endpoint != EndpointType::kReliable, "--self", "is for endpoint rdm only"},
      {self && multi, "--self", "has one receive for each message"},
      {options.threads > 1 && !self, "--threads", "more than one are for --self"},
      {options.threads > 1 && options.threading == Threading::kDomain, "--threads",
       "more than one are for other models than domain"},
      {options.threads > 1 && latency, "--threads", "more than one are for a rate"},
  };
  for (const Refusal& each : refusals) {
    if (each.applies) throw CLI::ValidationError(each.option, each.why);
  }
}

}  // namespace

Options parse_options(int argc, char** argv) {
  Options options;
  CLI::App app{"Measures a libfabric provider between two processes; prints one line of JSON."};
  std::string connect;
  std::vector<int> cores;
  add_measurement(app, options);
  add_connections(app, options);
  add_manner(app, options);
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
  if (options.server_address.empty()) options.server_address = options.address;
  if (options.reach == 0) options.reach = options.processes / 2;
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

bool makes_connections(Metric metric) {
  return metric == Metric::kConnect || metric == Metric::kMesh;
}

bool is_atomic(Operation operation) {
  return operation == Operation::kFetchAdd || operation == Operation::kCompareSwap;
}

const char* name_of(Operation operation) { return find_name(operation_names, operation); }
const char* name_of(Metric metric) { return find_name(metric_names, metric); }
const char* name_of(EndpointType type) { return find_name(endpoint_names, type); }
const char* name_of(Receive receive) { return find_name(receive_names, receive); }
const char* name_of(CountBy count_by) { return find_name(count_by_names, count_by); }
const char* name_of(Threading threading) { return find_name(threading_names, threading); }

}  // namespace weft::bench
