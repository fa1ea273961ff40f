// SPDX-License-Identifier: BSD-2-Clause
// How long does an operation take that is repeated for some seconds?
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <vector>

namespace weft::bench {

// Seconds of one operation: the median over pieces of COUNT operations that are timed together, so
// that an interruption of the process spoils a piece only.
template <class Operation>
double seconds_of_each(double seconds, std::size_t count, Operation operation) {
  using Clock = std::chrono::steady_clock;
  std::vector<double> pieces;
  const auto end = Clock::now() + std::chrono::duration<double>(seconds);
  do {
    const auto begin = Clock::now();
    for (std::size_t i = 0; i < count; ++i) operation();
    const std::chrono::duration<double> taken = Clock::now() - begin;
    pieces.push_back(taken.count() / static_cast<double>(count));
  } while (Clock::now() < end);
  std::ranges::sort(pieces);
  return pieces[pieces.size() / 2];
}

}  // namespace weft::bench
