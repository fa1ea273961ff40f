// SPDX-License-Identifier: BSD-2-Clause
// What is a counter to a libfabric program? fi_cntr(3)
#pragma once

#include <rdma/fi_eq.h>

#include "device/counter.h"
#include "domain.h"
#include "usable.h"

namespace weft::fabric {

// The object behind a fid_cntr.
class Counter : public fid_cntr, public Usable {
 public:
  Counter(Domain& domain, device::WaitKind wait, void* context);

  // The object behind `cntr`.
  static Counter& from(fid_cntr* cntr) { return *static_cast<Counter*>(cntr); }

  device::Counter& counter() { return counter_; }

  // The values, which the program has seen then.
  std::uint64_t read() { return seen_value_ = counter_.value(); }
  std::uint64_t read_errors() { return seen_errors_ = counter_.errors(); }
  // True when there is something that the program has not seen.
  bool has_news() const {
    return counter_.value() != seen_value_ || counter_.errors() != seen_errors_;
  }

 private:
  const Use use_;
  device::Counter counter_;
  std::atomic<std::uint64_t> seen_value_{0};
  std::atomic<std::uint64_t> seen_errors_{0};
};

}  // namespace weft::fabric
