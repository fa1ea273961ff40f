// SPDX-License-Identifier: BSD-2-Clause
// How a measurement is told: one line of JSON.
#pragma once

#include <string>

#include "options.h"
#include "session.h"

namespace weft::bench {

// {"provider", "operation", "metric", "size", "window", "iterations", "value", "unit", "samples",
// "pinned", "verified", "libfabric"}: "value" is the median of "samples", in "unit": us
// (latencies), M/s (rate: 10^6 operations per second) or GB/s (bandwidth: 10^9 bytes per second).
// "pinned": whether the two sides had a core each; "libfabric": the version that ran.
std::string to_json(const Options& options, const Measurement& measurement, bool pinned);

}  // namespace weft::bench
