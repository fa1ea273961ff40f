// SPDX-License-Identifier: BSD-2-Clause
// How does an operation wait until a counter has reached a value, and what starts it? fi_trigger(3)
#include "device/trigger_queue.h"

#include <algorithm>
#include <new>
#include <utility>
#include <vector>

namespace weft::device {

Result<std::unique_ptr<TriggerQueue>> TriggerQueue::open(const Locking& locking) {
  auto event = os::Event::create();
  if (!event) return event.error();
  return std::unique_ptr<TriggerQueue>(new TriggerQueue(locking, std::move(event).value()));
}

// A change that was noted before needs no bell: no thread fell asleep since.
void TriggerQueue::reached() {
  if (noted_.exchange(true)) return;
  if (sleepers_.load() > 0) event_.set();
}

bool TriggerQueue::due(const Waiting& waiting) {
  const std::uint64_t value = waiting.counter->value();
  return (waiting.work ? value + waiting.counter->errors() : value) >= waiting.threshold;
}

// Behind all whose threshold is not higher; most are submitted in that order.
void TriggerQueue::insert(OperationList& entries, OperationList& one) {
  const std::uint64_t threshold = one.front().waiting.threshold;
  const auto before = std::find_if(
      entries.rbegin(), entries.rend(),
      [&](const QueuedOperation& entry) { return entry.waiting.threshold <= threshold; });
  entries.splice(before.base(), one);
}

// Watches the counter for the first of what waits for it, or not any more. Returns the next one.
TriggerQueue::Counters::iterator TriggerQueue::settle(Counters::iterator entries) {
  Counter& counter = *entries->first;
  if (entries->second.empty()) {
    counter.watch(*this, Counter::kNoSum);
    return waiting_.erase(entries);
  }
  counter.watch(*this, entries->second.front().waiting.threshold);
  return std::next(entries);
}

void TriggerQueue::submit(const Waiting& waiting, std::unique_ptr<Deferred> operation) {
  OperationList one;
  one.push_back({waiting, Use(*waiting.counter), std::move(operation)});
  {
    const Section section(lock_);
    const auto entries = waiting_.try_emplace(waiting.counter).first;
    insert(entries->second, one);
    settle(entries);
    if (due(waiting)) noted_.store(true);
  }
  try_progress();
}

TriggerQueue::OperationList TriggerQueue::withdraw(
    const std::function<bool(const Waiting&)>& which) {
  OperationList withdrawn;
  const auto take = [&](OperationList& entries) {
    for (auto entry = entries.begin(); entry != entries.end();) {
      const auto next = std::next(entry);
      if (which(entry->waiting)) withdrawn.splice(withdrawn.end(), entries, entry);
      entry = next;
    }
  };
  {
    const Section section(lock_);
    take(due_);
    for (auto entries = waiting_.begin(); entries != waiting_.end();) {
      take(entries->second);
      entries = settle(entries);
    }
  }
  try_progress();  // changes that were noted meanwhile were left to the holder of the lock
  return withdrawn;
}

// Moves what is due, of each counter in order, behind what was due before.
void TriggerQueue::collect() {
  for (auto counter = waiting_.begin(); counter != waiting_.end();) {
    OperationList& entries = counter->second;
    for (auto entry = entries.begin(); entry != entries.end();) {
      const auto next = std::next(entry);
      if (due(entry->waiting)) due_.splice(due_.end(), entries, entry);
      entry = next;
    }
    counter = settle(counter);
  }
}

void TriggerQueue::start_due() {
  std::vector<const void*> held_up;
  for (auto entry = due_.begin(); entry != due_.end();) {
    const void* const owner = entry->waiting.owner;
    const bool behind = std::find(held_up.begin(), held_up.end(), owner) != held_up.end();
    if (!behind && entry->operation->start()) {
      entry = due_.erase(entry);
      continue;
    }
    if (!behind && owner != nullptr) held_up.push_back(owner);
    ++entry;
  }
}

// The thread inside looks once more before it leaves, at everything that was noted meanwhile.
void TriggerQueue::progress() {
  polls_.store(polls_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  for (bool first = true; noted_.load() || (first && held_up_.load()); first = false) {
    const ExclusiveEntry entry(lock_.biased_lock());
    const std::unique_lock guard(lock_.inner(), std::try_to_lock);
    if (!guard.owns_lock()) return;
    held_up_.store(true);  // should memory run out
    if (noted_.exchange(false)) collect();
    start_due();
    held_up_.store(!due_.empty());
  }
  // A sleeping thread has to try again, too.
  if (held_up_.load() && sleepers_.load() > 0) [[unlikely]]
    event_.set();
}

void TriggerQueue::try_progress() noexcept {
  try {
    progress();
  } catch (const std::bad_alloc&) {
    // No thread sleeps until it has been tried again: progress() has left its mark.
  }
}

bool TriggerQueue::fall_asleep() {
  sleepers_.fetch_add(1);
  event_.clear();
  if (!noted_.load() && !held_up_.load()) return true;
  event_.set();  // for threads that slept before
  return false;
}

void TriggerQueue::wake_up() { sleepers_.fetch_sub(1); }

}  // namespace weft::device
