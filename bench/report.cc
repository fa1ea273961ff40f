// SPDX-License-Identifier: BSD-2-Clause
// How seconds become figures with units.
#include "report.h"

#include <rdma/fabric.h>

#include <algorithm>
#include <sstream>

namespace weft::bench {
namespace {

double in_unit(const Options& options, double seconds) {
  switch (options.metric) {
    case Metric::kLatency:
    case Metric::kPollLatency:
    case Metric::kConnect:
      return seconds * 1e6;
    case Metric::kMesh:
      return seconds * 1e3;
    case Metric::kRate:
      return 1e-6 / seconds;
    case Metric::kBandwidth:
      return static_cast<double>(options.size) * 1e-9 / seconds;
  }
  return 0;
}

const char* unit_of(Metric metric) {
  switch (metric) {
    case Metric::kLatency:
    case Metric::kPollLatency:
    case Metric::kConnect:
      return "us";
    case Metric::kMesh:
      return "ms";
    case Metric::kRate:
      return "M/s";
    case Metric::kBandwidth:
      return "GB/s";
  }
  return "?";
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const std::size_t middle = values.size() / 2;
  if (values.size() % 2 == 1) return values[middle];
  return (values[middle - 1] + values[middle]) / 2;
}

// One JSON object, written member by member.
class Object {
 public:
  Object() { text_.precision(5); }

  void add(const char* name, const std::string& text) { begin(name) << '"' << text << '"'; }
  void add(const char* name, const char* text) { add(name, std::string(text)); }
  void add(const char* name, bool value) { begin(name) << (value ? "true" : "false"); }
  void add(const char* name, double number) { begin(name) << number; }
  void add(const char* name, std::uint64_t number) { begin(name) << number; }
  void add(const char* name, const std::vector<double>& numbers) {
    begin(name) << '[';
    for (std::size_t i = 0; i < numbers.size(); ++i) text_ << (i == 0 ? "" : ", ") << numbers[i];
    text_ << ']';
  }
  std::string text() const { return "{" + text_.str() + "}"; }

 private:
  std::ostream& begin(const char* name) {
    return text_ << (text_.tellp() > 0 ? ", \"" : "\"") << name << "\": ";
  }

  std::ostringstream text_;
};

std::string libfabric_version() {
  return std::to_string(FI_MAJOR(fi_version())) + '.' + std::to_string(FI_MINOR(fi_version()));
}

// What every line begins with.
void describe(const Options& options, const std::string& provider, Object& line) {
  line.add("provider", provider);
  line.add("endpoint", name_of(options.endpoint));
  line.add("operation", name_of(options.operation));
  line.add("metric", name_of(options.metric));
}

// What every line ends with.
std::string finished(Object& line) {
  line.add("verified", true);
  line.add("libfabric", libfabric_version());
  return line.text();
}

}  // namespace

std::string to_json(const Options& options, const Measurement& measurement, bool pinned) {
  std::vector<double> samples;
  for (const double seconds : measurement.seconds_per_operation) {
    samples.push_back(in_unit(options, seconds));
  }
  Object line;
  describe(options, measurement.provider, line);
  line.add("size", std::uint64_t{options.size});
  line.add("receive", name_of(options.receive));
  line.add("count_by", name_of(options.count_by));
  line.add("threading", name_of(options.threading));
  line.add("threads", std::uint64_t{options.threads});
  line.add("peers", std::uint64_t{options.peers});
  line.add("window", measurement.window);
  line.add("iterations", measurement.iterations);
  line.add("lost", measurement.lost);
  line.add("value", median(samples));
  line.add("unit", unit_of(options.metric));
  line.add("samples", samples);
  line.add("first_message_ms", measurement.seconds_to_first_message * 1e3);
  line.add("private_kib_per_peer", measurement.growth.private_bytes / 1024);
  line.add("shared_kib_per_peer", measurement.growth.shared_bytes / 1024);
  line.add("sockets_per_peer", measurement.growth.sockets);
  line.add("threads_per_peer", measurement.growth.threads);
  line.add("pinned", pinned);
  return finished(line);
}

std::string to_json(const Options& options, const ConnectFigures& figures) {
  Object line;
  describe(options, figures.provider, line);
  line.add("connections", std::uint64_t{options.connections});
  line.add("under_way", std::uint64_t{options.under_way});
  line.add("value", in_unit(options, figures.seconds_each));
  line.add("unit", unit_of(options.metric));
  line.add("first_ms", figures.first_seconds * 1e3);
  line.add("median_ms", figures.median_seconds * 1e3);
  line.add("slow_ms", figures.slow_seconds * 1e3);
  line.add("last_to_first_quarter", figures.last_to_first_quarter);
  line.add("private_kib_per_connection", figures.growth.private_bytes / 1024);
  line.add("shared_kib_per_connection", figures.growth.resident_bytes / 1024);
  line.add("shm_files_kib_per_connection", figures.growth.shared_bytes / 1024);
  line.add("descriptors_per_connection", figures.growth.descriptors);
  line.add("threads_per_connection", figures.growth.threads);
  return finished(line);
}

std::string to_json(const Options& options, double mesh_seconds) {
  const std::uint64_t connections = options.processes * options.reach;
  Object line;
  describe(options, options.provider, line);
  line.add("processes", std::uint64_t{options.processes});
  line.add("reach", std::uint64_t{options.reach});
  line.add("connections", connections);
  line.add("under_way", std::uint64_t{options.under_way});
  line.add("value", in_unit(options, mesh_seconds));
  line.add("unit", unit_of(options.metric));
  line.add("us_each", mesh_seconds * 1e6 / static_cast<double>(connections));
  return finished(line);
}

}  // namespace weft::bench
