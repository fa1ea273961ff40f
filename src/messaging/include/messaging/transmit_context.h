// SPDX-License-Identifier: BSD-2-Clause
// Which operations does a transmit context hold? fi_endpoint(3), fi_tx_attr
#pragma once

#include <cstddef>
#include <vector>

#include "device/completion_queue.h"

namespace weft::messaging {

// Holds each operation from the call that starts it until it has ended and the program has taken
// its completion, if it has one. One thread.
class TransmitContext {
 public:
  // Room for `size` operations, which are reported in `queue` (null: nowhere), which outlives it.
  TransmitContext(std::size_t size, const device::CompletionQueue* queue)
      : size_(size), queue_(queue) {}

  // True when it holds as many as fit; else there is memory for one more. An operation that is
  // never reported in the queue waits for those in flight only. Most calls do without a look at the
  // queue.
  bool full(bool may_be_reported) {
    if (!may_be_reported) return in_flight_ >= size_;
    if (held() >= positions_.size() && queue_ != nullptr) [[unlikely]]
      make_room();
    return held() >= size_ && forget_taken() >= size_;
  }
  // How many more operations fit into it and into the queue.
  std::size_t room();

  // An operation has not ended with its call; it has ended.
  void begin() { ++in_flight_; }
  void end() { --in_flight_; }
  // An operation is reported by the next entry of the queue. From within CompletionQueue::push().
  void report() {
    if (reported_ - forgotten_ == positions_.size()) [[unlikely]]
      make_room();
    positions_[reported_++ & (positions_.size() - 1)] = queue_->added();
  }

 private:
  std::size_t held() const { return in_flight_ + (reported_ - forgotten_); }
  std::size_t forget_taken();
  void make_room();

  const std::size_t size_;
  const device::CompletionQueue* const queue_;
  std::size_t in_flight_ = 0;
  // Counts since the beginning: of all completions, and of those that are known to have been taken.
  std::size_t reported_ = 0;
  std::size_t forgotten_ = 0;
  // Where the others are in the queue, by CompletionQueue::added(): a ring, whose length is a power
  // of two, or 0 before the first.
  std::vector<std::size_t> positions_;
};

}  // namespace weft::messaging
