// SPDX-License-Identifier: BSD-2-Clause
// What the two processes do in one phase, for each operation and metric.
#pragma once

#include <cstdint>

#include "context.h"
#include "options.h"

namespace weft::bench {

// One phase of ITERATIONS operations. The client's side returns the seconds that it took: for a
// latency at the median speed of its pieces, for a stream from the first operation posted to the
// last one known to have ended; what counts as ended stands at each definition. Both sides return
// with nothing in flight.
struct Workload {
  double (*client)(Context&, Channel&, std::uint64_t iterations);
  void (*server)(Context&, Channel&, std::uint64_t iterations);
  // The client's seconds divided by this and by the iterations are the figure: 2 for a round
  // trip that counts as two operations.
  double operations_per_iteration;
};

Workload two_sided_latency(Operation operation);
Workload two_sided_stream(Operation operation);
Workload one_sided_latency(Operation operation);
Workload one_sided_stream(Operation operation);
Workload rma_write_poll_latency();

inline Workload workload_for(Operation operation, Metric metric) {
  switch (metric) {
    case Metric::kLatency:
      return is_one_sided(operation) ? one_sided_latency(operation) : two_sided_latency(operation);
    case Metric::kPollLatency:
      return rma_write_poll_latency();
    case Metric::kRate:
    case Metric::kBandwidth:
      break;
  }
  return is_one_sided(operation) ? one_sided_stream(operation) : two_sided_stream(operation);
}

// Sends ITERATIONS messages from the endpoint to itself, one at a time, in one thread. The
// seconds that it took.
double run_self(Context& context, Operation operation, std::uint64_t iterations);

}  // namespace weft::bench
