// SPDX-License-Identifier: BSD-2-Clause
// By which numbers does the inbox of an endpoint name its sources?
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace weft::rdm {

// The contexts that requests arrive over, by the inbox's numbers: the lowest that are free.
class SourceNumbers {
 public:
  explicit SourceNumbers(std::uint32_t first) : first_(first) {}

  // Names a context.
  std::uint32_t name(std::uint32_t context) {
    const auto place = std::find(contexts_.begin(), contexts_.end(), 0U) - contexts_.begin();
    const auto index = static_cast<std::size_t>(place);
    if (index == contexts_.size()) contexts_.push_back(0);
    contexts_[index] = context;
    return first_ + static_cast<std::uint32_t>(index);
  }
  void forget(std::uint32_t number) { contexts_[number - first_] = 0; }
  // The context of a source; 0: none.
  std::uint32_t context_of(std::uint32_t number) const {
    const std::size_t index = number - first_;
    return index < contexts_.size() ? contexts_[index] : 0;
  }

 private:
  const std::uint32_t first_;
  std::vector<std::uint32_t> contexts_;  // 0: free
};

}  // namespace weft::rdm
