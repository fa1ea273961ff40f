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
      return seconds * 1e6;
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
      return "us";
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

}  // namespace

std::string to_json(const Options& options, const Measurement& measurement, bool pinned) {
  std::vector<double> samples;
  for (const double seconds : measurement.seconds_per_operation) {
    samples.push_back(in_unit(options, seconds));
  }
  std::ostringstream line;
  line.precision(5);
  line << R"({"provider": ")" << measurement.provider << R"(", "operation": ")"
       << name_of(options.operation) << R"(", "metric": ")" << name_of(options.metric)
       << R"(", "size": )" << options.size << R"(, "window": )" << measurement.window
       << R"(, "iterations": )" << measurement.iterations << R"(, "value": )" << median(samples)
       << R"(, "unit": ")" << unit_of(options.metric) << R"(", "samples": [)";
  for (std::size_t i = 0; i < samples.size(); ++i) line << (i == 0 ? "" : ", ") << samples[i];
  line << R"(], "pinned": )" << (pinned ? "true" : "false")
       << R"(, "verified": true, "libfabric": ")" << FI_MAJOR(fi_version()) << '.'
       << FI_MINOR(fi_version()) << R"("})";
  return line.str();
}

}  // namespace weft::bench
