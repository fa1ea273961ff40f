// SPDX-License-Identifier: BSD-2-Clause
// What is a counter to a libfabric program? fi_cntr(3)
#pragma once

#include <rdma/fi_eq.h>

#include "base/usable.h"
#include "device/counter.h"
#include "domain.h"
#include "fid_object.h"
#include "wait_point.h"

namespace weft::fabric {

// The object behind a fid_cntr.
class Cntr : public ChildObject<Cntr, fid_cntr, Domain>, public Usable {
 public:
  Cntr(Domain& domain, const WaitWish& wish, Places::Reservation place, void* context);

  // The object behind `cntr`; null unless it is a counter of that domain.
  static Cntr* of(fid_cntr* cntr, const Domain& domain);

  // Deferred work that is to count here uses it, too.
  bool in_use() const { return Usable::in_use() || counter_.in_use(); }
  Domain& domain() const { return parent(); }
  device::Counter& counter() { return counter_; }
  WaitPoint& wait_point() { return wait_point_; }

  // The values, which the program has seen then.
  std::uint64_t read() { return seen_value_ = counter_.value(); }
  std::uint64_t read_errors() { return told_errors_ = seen_errors_ = counter_.errors(); }
  // fi_cntr_wait(3). An error that the program was not told of ends it: it has neither read it, nor
  // counted it itself before, nor has a wait returned for it.
  int wait(std::uint64_t threshold, int timeout_ms);
  // fi_cntr_add(3), fi_cntr_set(3) and the like: what the program does itself is no news to
  // fi_poll.
  void add(std::uint64_t count);
  void add_errors(std::uint64_t count);
  void set(std::uint64_t value);
  void set_errors(std::uint64_t value);
  // True when a value has changed since the last call, for fi_poll(3).
  bool take_poll_news();

 private:
  // True when there is something that the program has not seen.
  bool has_news() const {
    return counter_.value() != seen_value_ || counter_.errors() != seen_errors_;
  }

  const Places::Reservation place_;
  device::Counter counter_;
  std::atomic<std::uint64_t> seen_value_{0};
  std::atomic<std::uint64_t> seen_errors_{0};
  std::atomic<std::uint64_t> polled_value_{0};
  std::atomic<std::uint64_t> polled_errors_{0};
  std::atomic<std::uint64_t> told_errors_{0};
  WaitPoint wait_point_;
};

}  // namespace weft::fabric
