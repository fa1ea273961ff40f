// SPDX-License-Identifier: BSD-2-Clause
// Where do finished operations wait until the program asks?
#include "device/completion_queue.h"

#include <algorithm>
#include <bit>
#include <string>
#include <utility>

namespace weft::device {

CompletionQueue::CompletionQueue(std::size_t size, const Locking& locking, WaitKind wait,
                                 Full when_full)
    : lock_(locking), engines_(locking, wait), when_full_(when_full), size_(size) {
  lay_out(std::bit_ceil(std::clamp<std::size_t>(size, 16, 4096)));
}

CompletionQueue::~CompletionQueue() { forget_events(); }

void CompletionQueue::forget_events() {
  const ControlGuard guard(lock_);
  armed_ = Armed::kNot;
  for (Notification* each : {&on_entry_, &on_overrun_}) {
    if (each->channel != nullptr) std::exchange(each->channel, nullptr)->forget(each->source);
  }
}

// Moves what is queued into a ring of that many entries, a power of two.
void CompletionQueue::lay_out(std::size_t entries) {
  std::vector<Completion> ring(entries);
  for (std::size_t i = head_; i != tail_; ++i) ring[i & (entries - 1)] = at(i);
  entries_ = std::move(ring);
  ring_ = entries_.data();
  mask_ = entries - 1;
  places_ = when_full_ == Full::kGrow ? entries : std::min(entries, size_.load());
}

// False when the entry that is to be added is refused. After an overrun every entry is: a program
// that polled on could not tell what is missing.
bool CompletionQueue::make_room() {
  if (when_full_ == Full::kGrow || (!overran_ && size() < size_)) {
    lay_out(entries_.size() * 2);
    return true;
  }
  if (!overran_ && on_overrun_.channel != nullptr) {
    on_overrun_.channel->raise(on_overrun_.source, on_overrun_.object);
  }
  overran_ = true;
  places_ = 0;
  return false;
}

bool CompletionQueue::pop_error(Completion& out) {
  const Section section(lock_);
  if (empty() || at(head_).ok()) return false;
  out = at(head_);
  head_.fetch_add(1, std::memory_order_release);
  errors_.fetch_sub(1, std::memory_order_relaxed);
  return true;
}

Status CompletionQueue::resize(std::size_t size) {
  const ControlGuard guard(lock_);
  if (size == 0 || (when_full_ == Full::kOverrun && size < this->size())) {
    return Error{EINVAL, "completion queue of " + std::to_string(size) +
                             " entries: " + std::to_string(this->size()) + " are queued"};
  }
  size_ = size;
  if (when_full_ == Full::kOverrun && !overran_) places_ = std::min(entries_.size(), size);
  return {};
}

void CompletionQueue::purge(const void* owner) {
  const ControlGuard guard(lock_);
  std::size_t end = head_;
  for (std::size_t i = head_; i != tail_; ++i) {
    const bool leaves = at(i).owner == owner;
    if (leaves && !at(i).ok()) errors_.fetch_sub(1, std::memory_order_relaxed);
    if (!leaves) at(end++) = at(i);
  }
  tail_.store(end, std::memory_order_relaxed);
}

// With the lock of the queue: an entry is added before this, and the caller finds it, or after it,
// and raises the event.
void CompletionQueue::arm(bool solicited_only, EventChannel& channel, void* object) {
  const Section section(lock_);
  if (on_entry_.channel != nullptr && on_entry_.channel != &channel) {
    on_entry_.channel->forget(on_entry_.source);
  }
  on_entry_.channel = &channel;
  on_entry_.object = object;
  armed_ = std::max(armed_, solicited_only ? Armed::kSolicited : Armed::kAll);
}

void CompletionQueue::report_overrun(EventChannel& channel, void* object) {
  const ControlGuard guard(lock_);
  on_overrun_.channel = &channel;
  on_overrun_.object = object;
}

void CompletionQueue::raise_entry(const Completion& completion) {
  const bool solicited = !completion.ok() || (completion.flags & kSolicited) != 0;
  if (armed_ == Armed::kSolicited && !solicited) return;
  armed_ = Armed::kNot;
  on_entry_.channel->raise(on_entry_.source, on_entry_.object);
}

}  // namespace weft::device
