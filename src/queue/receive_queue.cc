// SPDX-License-Identifier: BSD-2-Clause
// Which receives has a program posted?
#include "queue/receive_queue.h"

#include <algorithm>
#include <cerrno>
#include <string>
#include <utility>

namespace weft::queue {

QpReceiveQueue::QpReceiveQueue(std::uint32_t receives, std::uint32_t sges)
    : size_(receives), sges_(sges), entries_(receives), segments_(std::size_t{receives} * sges) {}

int QpReceiveQueue::post(std::uint64_t id, std::span<const work::Segment> segments) {
  if (segments.size() > sges_) return EINVAL;
  const MutexLock guard(mutex_);
  const std::uint32_t posted = posted_.load(std::memory_order_relaxed);
  if (posted >= size_) return ENOMEM;
  const std::uint32_t place = (first_ + posted) % size_;
  entries_[place] = {id, static_cast<std::uint32_t>(segments.size())};
  std::copy(segments.begin(), segments.end(), segments_.begin() + std::size_t{place} * sges_);
  posted_.store(posted + 1, std::memory_order_release);
  return 0;
}

bool QpReceiveQueue::take(PostedReceive& receive) {
  const MutexLock guard(mutex_);
  const std::uint32_t posted = posted_.load(std::memory_order_relaxed);
  if (posted == 0) return false;
  const PostedEntry& entry = entries_[first_];
  const auto begin = segments_.begin() + std::size_t{first_} * sges_;
  receive.id = entry.id;
  receive.segments.assign(begin, begin + entry.count);
  receive.length = 0;
  for (const work::Segment& each : receive.segments) receive.length += each.length;
  first_ = (first_ + 1) % size_;
  posted_.store(posted - 1, std::memory_order_release);
  if (posted - 1 < limit_) [[unlikely]] {
    limit_ = 0;
    std::exchange(reached_, nullptr)();
  }
  return true;
}

void QpReceiveQueue::clear() {
  const MutexLock guard(mutex_);
  posted_.store(0, std::memory_order_release);
  first_ = 0;
}

Status QpReceiveQueue::arm(std::uint32_t limit, std::function<void()> reached) {
  const MutexLock guard(mutex_);
  if (limit > size_) {
    return Error{EINVAL, "limit " + std::to_string(limit) + " of a queue of " +
                             std::to_string(size_) + " receives"};
  }
  limit_ = limit;
  reached_ = limit != 0 ? std::move(reached) : nullptr;
  return {};
}

std::uint32_t QpReceiveQueue::limit() const {
  const MutexLock guard(mutex_);
  return limit_;
}

Status QpReceiveQueue::resize(std::uint32_t receives) {
  const MutexLock guard(mutex_);
  const std::uint32_t posted = posted_.load(std::memory_order_relaxed);
  if (receives == 0 || receives < posted) {
    return Error{EINVAL, std::to_string(posted) + " receives are posted"};
  }
  std::vector<PostedEntry> entries(receives);
  std::vector<work::Segment> segments(std::size_t{receives} * sges_);
  for (std::uint32_t i = 0; i < posted; ++i) {
    const std::uint32_t from = (first_ + i) % size_;
    entries[i] = entries_[from];
    std::copy_n(segments_.begin() + std::size_t{from} * sges_, entries[i].count,
                segments.begin() + std::size_t{i} * sges_);
  }
  entries_ = std::move(entries);
  segments_ = std::move(segments);
  size_ = receives;
  first_ = 0;
  return {};
}

}  // namespace weft::queue
