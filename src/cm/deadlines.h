// SPDX-License-Identifier: BSD-2-Clause
// What is due, and when?
#pragma once

#include <set>
#include <utility>

#include "base/time.h"

namespace weft::cm {

// A time for each key that has one. The owner of a key keeps that time, too: with it the entry is
// found. Time::max() stands for none.
template <class Key>
class Deadlines {
 public:
  // `kept` is the time that the key has here, and becomes `at`. Allocates only for a first time.
  void move(const Key& key, Time& kept, Time at) {
    if (kept == at) return;
    auto node = times_.extract({kept, key});
    kept = at;
    if (at == Time::max()) return;
    if (node.empty()) {
      times_.emplace(at, key);
      return;
    }
    node.value() = {at, key};
    times_.insert(std::move(node));
  }
  // The earliest time.
  Time due() const { return times_.empty() ? Time::max() : times_.begin()->first; }
  // The key with the earliest time; only when there is one.
  Key next() const { return times_.begin()->second; }

 private:
  std::set<std::pair<Time, Key>> times_;
};

}  // namespace weft::cm
