// SPDX-License-Identifier: BSD-2-Clause
// Which send requests of a queue pair have not been completed?
#include "queue/send_queue.h"

#include <utility>

namespace weft::queue {

QpSendQueue::QpSendQueue(std::uint32_t requests, std::uint32_t inline_bytes)
    : slots_(requests),
      inline_bytes_(inline_bytes),
      bytes_(std::make_unique_for_overwrite<std::byte[]>(std::size_t{requests} * inline_bytes)) {}

SendSlot* QpSendQueue::take() {
  if (taken_ - retired_.load(std::memory_order_acquire) >= slots_.size()) return nullptr;
  return &slots_[taken_++ % slots_.size()];
}

std::byte* QpSendQueue::inline_place(const SendSlot& slot) {
  return bytes_.get() + static_cast<std::size_t>(&slot - slots_.data()) * inline_bytes_;
}

std::uint32_t QpSendQueue::ended(bool completes) {
  ++ended_;
  if (!completes) return 0;
  return static_cast<std::uint32_t>(ended_ - std::exchange(reported_, ended_));
}

void QpSendQueue::clear() {
  ended_ = reported_ = taken_;
  retired_.store(taken_, std::memory_order_release);
}

}  // namespace weft::queue
