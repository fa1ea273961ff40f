// SPDX-License-Identifier: BSD-2-Clause
// What counters tell: fi_cntr(3) in place of a completion queue.
#pragma once

#include <rdma/fi_eq.h>

#include "completions.h"
#include "endpoint.h"

namespace weft::bench {

// Reads the two counters of an endpoint that was opened with CountBy::kCounters.
class CounterCompletions final : public Completions {
 public:
  explicit CounterCompletions(const Endpoint& endpoint);
  using Completions::poll;
  void poll(Interest interest) override;
  void start_phase() override;

 private:
  void read(fid_cntr* counter, std::uint64_t base, std::uint64_t& count);
  void look_for_errors();

  fid_cq* errors_;
  fid_cntr* sent_counter_;
  fid_cntr* received_counter_;
  // What the counters showed when the phase began.
  std::uint64_t sent_base_ = 0;
  std::uint64_t received_base_ = 0;
  unsigned idle_polls_ = 0;
};

}  // namespace weft::bench
