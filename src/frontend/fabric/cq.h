// SPDX-License-Identifier: BSD-2-Clause
// What is a completion queue to a libfabric program? fi_cq(3)
#pragma once

#include <rdma/fi_eq.h>

#include <atomic>
#include <mutex>

#include "base/usable.h"
#include "completion_error.h"
#include "device/completion_queue.h"
#include "domain.h"
#include "fid_object.h"
#include "wait_point.h"

namespace weft::fabric {

// The object behind a fid_cq.
class Cq : public ChildObject<Cq, fid_cq, Domain>, public Usable {
 public:
  Cq(Domain& domain, const fi_cq_attr& attributes, const WaitWish& wish, Places::Reservation place,
     void* context);

  Domain& domain() const { return parent(); }
  device::CompletionQueue& queue() { return queue_; }
  WaitPoint& wait_point() { return wait_point_; }
  fi_cq_format format() const { return format_; }
  // A transmit context of that size begins, or ends, to report here. Where the program leaves the
  // size of the queue to weft, there is room for what all of them hold.
  void admit(std::size_t transmit_size);
  void dismiss(std::size_t transmit_size);
  // Where fi_cq_readerr(3) leaves error data that the program gives no place for.
  LentErrorData& lent_error_data() { return lent_; }
  // For a read that finds entries: true now and then, and when an endpoint asked. A program that
  // reads as fast as its own operations end never finds the queue empty, and peers need progress.
  bool progress_is_due();
  // How many entries end a wait, fi_cq_sread(3).
  std::size_t threshold(const void* condition) const;

 private:
  void fit_transmit_contexts();

  const Places::Reservation place_;
  const fi_cq_format format_;
  const bool has_threshold_;
  const bool chooses_size_;
  const std::size_t size_;
  std::mutex control_;
  std::size_t transmit_sizes_ = 0;
  device::CompletionQueue queue_;
  std::atomic<unsigned> reads_alone_{0};
  WaitPoint wait_point_;
  LentErrorData lent_{};
  const OpenObjects<Cq>::Listing listed_;
};

}  // namespace weft::fabric
