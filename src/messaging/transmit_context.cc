// SPDX-License-Identifier: BSD-2-Clause
// Which operations does a transmit context hold? fi_endpoint(3), fi_tx_attr
#include "messaging/transmit_context.h"

#include <algorithm>
#include <utility>

namespace weft::messaging {

std::size_t TransmitContext::room() {
  const std::size_t free = size_ - std::min(size_, forget_taken());
  return queue_ != nullptr ? std::min(free, queue_->room()) : free;
}

// How many operations are held.
std::size_t TransmitContext::forget_taken() {
  if (queue_ == nullptr) return held();
  const std::size_t taken = queue_->taken();
  while (forgotten_ != reported_ && positions_[forgotten_ & (positions_.size() - 1)] < taken) {
    ++forgotten_;
  }
  return held();
}

// Grows when more than half of the ring is in use, so that this is rare.
void TransmitContext::make_room() {
  constexpr std::size_t kLeast = 16;
  if (forget_taken() <= positions_.size() / 2 && !positions_.empty()) return;
  std::vector<std::size_t> larger(std::max(kLeast, 2 * positions_.size()));
  for (std::size_t i = forgotten_; i != reported_; ++i) {
    larger[i & (larger.size() - 1)] = positions_[i & (positions_.size() - 1)];
  }
  positions_ = std::move(larger);
}

}  // namespace weft::messaging
