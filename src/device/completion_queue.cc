// SPDX-License-Identifier: BSD-2-Clause
// Where do finished operations wait until the program asks?
#include "device/completion_queue.h"

#include <algorithm>
#include <bit>

namespace weft::device {

CompletionQueue::CompletionQueue(std::size_t size, const Locking& locking, WaitKind wait)
    : lock_(locking),
      engines_(locking, wait),
      size_(size),
      entries_(std::bit_ceil(std::clamp<std::size_t>(size, 16, 4096))),
      ring_(entries_.data()),
      mask_(entries_.size() - 1) {}

void CompletionQueue::grow() {
  std::vector<Completion> larger(entries_.size() * 2);
  for (std::size_t i = head_; i != tail_; ++i) larger[i & (larger.size() - 1)] = at(i);
  entries_ = std::move(larger);
  ring_ = entries_.data();
  mask_ = entries_.size() - 1;
}

bool CompletionQueue::pop_error(Completion& out) {
  const Section section(lock_);
  if (empty() || at(head_).ok()) return false;
  out = at(head_);
  head_.fetch_add(1, std::memory_order_relaxed);
  errors_.fetch_sub(1, std::memory_order_relaxed);
  return true;
}

}  // namespace weft::device
