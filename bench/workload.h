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

Workload two_sided_latency(const Options& options);
Workload two_sided_stream(const Options& options);
Workload one_sided_latency(const Options& options);
Workload one_sided_stream(const Options& options);
Workload rma_write_poll_latency();
Workload datagram_latency();
Workload datagram_stream();

// One operation after the other: what a latency is measured by, and what a single exchange is.
inline Workload exchange(const Options& options) {
  if (options.endpoint == EndpointType::kDatagram) return datagram_latency();
  return is_one_sided(options.operation) ? one_sided_latency(options) : two_sided_latency(options);
}

inline Workload stream(const Options& options) {
  if (options.endpoint == EndpointType::kDatagram) return datagram_stream();
  return is_one_sided(options.operation) ? one_sided_stream(options) : two_sided_stream(options);
}

// What the timed phases do.
inline Workload workload_for(const Options& options) {
  if (options.metric == Metric::kPollLatency) return rma_write_poll_latency();
  const bool streams = options.metric == Metric::kRate || options.metric == Metric::kBandwidth;
  return streams ? stream(options) : exchange(options);
}

// Sends ITERATIONS messages from the endpoint to itself, in one thread: for a latency one at a
// time, for a rate a window of them.
void run_self(Context& context, const Options& options, std::uint64_t iterations);

}  // namespace weft::bench
