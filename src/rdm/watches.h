// SPDX-License-Identifier: BSD-2-Clause
// When is each context to be looked at?
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <vector>

#include "os/clock.h"

namespace weft::rdm {

// Times at which contexts are to be looked at, the earliest first. A time that does not hold any
// more stays, and is told apart by its user (Context::watched_at).
class Watches {
 public:
  struct Watch {
    os::Time at;
    std::uint32_t context;
    bool operator<(const Watch& other) const { return other.at < at; }
  };

  void add(std::uint32_t context, os::Time at) {
    heap_.push_back({at, context});
    std::push_heap(heap_.begin(), heap_.end());
  }
  // The earliest one that is due, which is taken out.
  std::optional<Watch> take_due(os::Time now) {
    if (heap_.empty() || heap_.front().at > now) return std::nullopt;
    const Watch due = heap_.front();
    std::pop_heap(heap_.begin(), heap_.end());
    heap_.pop_back();
    return due;
  }
  // When the next one is due.
  os::Time due() const { return heap_.empty() ? os::Time::max() : heap_.front().at; }

 private:
  std::vector<Watch> heap_;
};

}  // namespace weft::rdm
