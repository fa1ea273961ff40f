// SPDX-License-Identifier: BSD-2-Clause
// Where do finished operations wait until the program asks?
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <mutex>
#include <span>
#include <vector>

#include "device/completion.h"
#include "device/engine.h"
#include "device/event_channel.h"
#include "os/optional_lock.h"

namespace weft::device {

// A queue of completions (fi_cq(3), ibv_create_cq(3)).
class CompletionQueue {
 public:
  // What becomes of an entry when as many are queued as the size says.
  enum class Full {
    kGrow,     // it finds room all the same; full() asks operations to be held back
    kOverrun,  // it is refused, and all later ones: the queue is lost, as with IBV_EVENT_CQ_ERR
  };

  // `size` is the number of entries from which full() holds.
  CompletionQueue(std::size_t size, const Locking& locking, WaitKind wait,
                  Full when_full = Full::kGrow);
  ~CompletionQueue();
  CompletionQueue(const CompletionQueue&) = delete;
  CompletionQueue& operator=(const CompletionQueue&) = delete;

  // Drives the endpoints of this queue; waiting and its descriptor.
  EngineGroup& engines() { return engines_; }
  // What a thread that takes entries comes through; null where locks keep threads apart.
  BiasedLock* biased_lock() const { return lock_.biased_lock(); }

  // Adds an entry, which fill(Completion&) must write completely: it holds what its place held
  // before. From within an endpoint of the domain, whose lock is held. False when it is refused
  // (Full::kOverrun).
  template <class Fill>
  bool push(Fill fill) {
    {
      const std::lock_guard guard(lock_.inner());
      if (size() >= places_ && !make_room()) [[unlikely]]
        return false;
      const std::size_t tail = tail_.load(std::memory_order_relaxed);
      Completion& completion = at(tail);
      fill(completion);
      if (!completion.ok()) [[unlikely]]
        errors_.fetch_add(1, std::memory_order_relaxed);
      tail_.store(tail + 1, std::memory_order_relaxed);
      if (armed_ != Armed::kNot) [[unlikely]]
        raise_entry(completion);
    }
    engines_.notify();
    return true;
  }
  // True when operations that would complete here must not be started.
  bool full() const { return room() == 0; }
  // True when as many entries again have come as the queue is to hold: not even a peer may add one
  // whose messages have to be taken in while full() holds.
  bool overrun() const { return size() / 2 >= size_.load(std::memory_order_relaxed); }
  // How many entries have been added, and have been taken by the program, since the beginning. Not
  // after purge().
  std::size_t added() const { return tail_.load(std::memory_order_relaxed); }
  std::size_t taken() const { return head_.load(std::memory_order_relaxed); }
  // The entries with which full() holds.
  std::size_t limit() const { return size_.load(std::memory_order_relaxed); }
  // How many operations may be started before full() holds: a hint, as those below.
  std::size_t room() const {
    const std::size_t queued = size();
    const std::size_t most = size_.load(std::memory_order_relaxed);
    return queued < most ? most - queued : 0;
  }
  // What is queued: hints only, unless the caller is the sole thread.
  bool empty() const { return tail_ == head_; }
  std::size_t size() const {
    const std::size_t head = head_;  // first: it never passes the tail
    return tail_ - head;
  }
  // How many entries have been added since the beginning, and how many of them are still queued:
  // both of one moment. Not after purge(). Any thread.
  struct Fill {
    std::size_t added;
    std::size_t queued;
  };
  Fill fill() const {
    for (std::size_t head = head_;;) {
      const std::size_t tail = tail_;
      const std::size_t later = head_;
      if (later == head) return {tail, tail - head};
      head = later;
    }
  }
  // The next read shall drive the endpoints, even when it finds entries: until then something waits
  // that has been reported. Any thread.
  void ask_for_progress() { asked_for_progress_.store(true, std::memory_order_relaxed); }
  // True once after that.
  bool progress_was_asked_for() {
    return asked_for_progress_.load(std::memory_order_relaxed) &&
           asked_for_progress_.exchange(false, std::memory_order_relaxed);
  }
  // True when an error is queued; how many are.
  bool has_error() const { return errors_ != 0; }
  std::size_t errors() const { return errors_; }

  // What stands at the front.
  enum class Front { kNothing, kCompletion, kError };
  // Calls take(const Completion&) for up to `count` entries from the front, stopping at an entry
  // with an error, and removes them. Sets `front` to what is at the front when it took none. The
  // caller is inside the biased lock of the domain (biased_lock()).
  template <class Take>
  std::size_t pop(std::size_t count, Front& front, Take take) {
    const std::lock_guard guard(lock_.inner());
    const std::size_t first = head_.load(std::memory_order_relaxed);
    const std::size_t end = tail_.load(std::memory_order_relaxed);
    std::size_t next = first;
    while (next != end && next - first < count && at(next).ok()) take(at(next++));
    front = next == end ? Front::kNothing : !at(next).ok() ? Front::kError : Front::kCompletion;
    head_.store(next, std::memory_order_release);  // for fill()
    return next - first;
  }
  // The same where entries with errors are entries like the others: stops at none.
  template <class Take>
  std::size_t pop_any(std::size_t count, Take take) {
    const std::lock_guard guard(lock_.inner());
    const std::size_t first = head_.load(std::memory_order_relaxed);
    const std::size_t end = std::min(tail_.load(std::memory_order_relaxed), first + count);
    for (std::size_t next = first; next != end; ++next) {
      const Completion& completion = at(next);
      if (!completion.ok()) errors_.fetch_sub(1, std::memory_order_relaxed);
      take(completion);
    }
    head_.store(end, std::memory_order_release);
    return end - first;
  }
  // Takes the error at the front; false when there is none there.
  bool pop_error(Completion& out);

  // Changes the size. Error: EINVAL when that is 0, or with Full::kOverrun less than is queued. A
  // control call.
  Status resize(std::size_t size);
  // Removes the entries of `owner`, which is about to go; the others stay in their order. For
  // queues of queue pairs. A control call.
  void purge(const void* owner);
  // Raises one event about `object` in `channel` when the next entry is added; if `solicited_only`,
  // the next that is solicited or an error (ibv_req_notify_cq(3)). Entries that are queued already
  // raise none: the caller looks for them after this. Arming again before that extends it to all
  // entries, never the other way. The channel outlives the queue, or a later arm() with another
  // one.
  void arm(bool solicited_only, EventChannel& channel, void* object);
  // Drops its events that were not taken, and raises no more.
  void forget_events();
  // Raises an event about `object` in `channel` when the queue overruns. Before the first entry;
  // the channel outlives the queue.
  void report_overrun(EventChannel& channel, void* object);

 private:
  enum class Armed : std::uint8_t { kNot, kSolicited, kAll };

  Completion& at(std::size_t position) { return ring_[position & mask_]; }
  bool make_room();
  void lay_out(std::size_t entries);
  void raise_entry(const Completion& completion);

  // What an event goes to.
  struct Notification {
    explicit Notification(Cause cause) : source(cause) {}
    EventSource source;
    EventChannel* channel = nullptr;
    void* object = nullptr;
  };

  OptionalLock lock_;
  EngineGroup engines_;
  const Full when_full_;
  bool overran_ = false;
  Notification on_entry_{Cause::kCompletion};
  Notification on_overrun_{Cause::kOverrun};
  std::atomic<std::size_t> size_;
  std::vector<Completion> entries_;  // a ring; its size is a power of two
  Completion* ring_ = nullptr;       // the same
  std::size_t mask_ = 0;             // its size less one
  std::size_t places_ = 0;           // how many entries are added without a further look
  Armed armed_ = Armed::kNot;
  // Counts since the beginning. Written under the lock, read as hints without it.
  std::atomic<std::size_t> head_{0};
  std::atomic<std::size_t> tail_{0};
  std::atomic<std::size_t> errors_{0};
  std::atomic<bool> asked_for_progress_{false};
};

}  // namespace weft::device
