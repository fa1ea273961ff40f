// SPDX-License-Identifier: BSD-2-Clause
// How much memory may peers make an endpoint keep, and how is it divided among them?
#pragma once

#include <algorithm>
#include <cstddef>
#include <utility>

namespace weft {

// How the flows of one endpoint divide a budget of bytes. Nothing that a flow holds is taken from
// it, so the first must not get all: a flow may hold a part of what is still free (a dynamic
// threshold, as switches have for their buffers), and a minimum in any case.
struct BudgetRules {
  std::size_t total = 0;
  std::size_t divisor = 1;  // a flow may hold 1/divisor of what is free
  std::size_t minimum = 0;  // and so much whatever the others hold
};

// All flows together hold at most the total, and the minimum of each flow beyond that. One thread
// at a time; shares end before their budget.
class Budget {
 public:
  class Share;

  explicit Budget(const BudgetRules& rules) : rules_(rules) {}
  Budget(const Budget&) = delete;
  Budget& operator=(const Budget&) = delete;

  std::size_t used() const { return used_; }
  // What one flow may hold now.
  std::size_t limit() const {
    const std::size_t left = rules_.total - std::min(rules_.total, used_);
    return std::max(left / rules_.divisor, rules_.minimum);
  }
  // True when every flow may have so many bytes more, whatever it holds: no share needs to be
  // looked at.
  bool is_plentiful(std::size_t bytes) const { return used_ + bytes <= limit(); }

 private:
  const BudgetRules rules_;
  std::size_t used_ = 0;
};

// What one flow holds of a budget.
class Budget::Share {
 public:
  explicit Share(Budget& budget) : budget_(budget) {}
  ~Share() { give(held_); }
  Share(const Share&) = delete;
  Share& operator=(const Share&) = delete;

  std::size_t held() const { return held_; }
  bool may_take(std::size_t bytes) const {
    const std::size_t limit = budget_.limit();
    return bytes <= limit && held_ <= limit - bytes;
  }
  // False when that would be more than this flow may hold: nothing is taken then.
  bool take(std::size_t bytes) {
    if (!may_take(bytes)) return false;
    charge(bytes);
    return true;
  }
  // For what cannot be refused any more.
  void charge(std::size_t bytes) {
    held_ += bytes;
    budget_.used_ += bytes;
  }
  void give(std::size_t bytes) {
    held_ -= bytes;
    budget_.used_ -= bytes;
  }

 private:
  Budget& budget_;
  std::size_t held_ = 0;
};

}  // namespace weft
