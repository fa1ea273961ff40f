// SPDX-License-Identifier: BSD-2-Clause
// How does an operation wait until a counter has reached a value, and what starts it? fi_trigger(3)
#pragma once

#include <atomic>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <unordered_map>

#include "base/result.h"
#include "device/counter.h"
#include "device/engine.h"
#include "os/event.h"
#include "os/optional_lock.h"

namespace weft::device {

// An operation that is started later.
class Deferred {
 public:
  virtual ~Deferred() = default;
  // Starts it; false when that has to be tried again. By one thread at a time, which holds the lock
  // of the queue: must not call the queue, nor drive engines.
  virtual bool start() = 0;
  // Reports that it will not be started, for this errno. The queue has given it back.
  virtual void fail(int error) = 0;
};

// What an operation waits for, and by what it is known.
struct Waiting {
  Counter* counter = nullptr;
  // Started when the counter's value, of deferred work its value and errors, is that or more.
  std::uint64_t threshold = 0;
  bool work = false;            // deferred work
  const void* owner = nullptr;  // of operations that start in order; null: not held up by any
  const void* name = nullptr;
};

// Operations that wait, and those whose time has come. Of one counter the lower threshold comes
// first, then the one submitted first. What cannot be started yet holds up those of the same owner
// behind it. While an operation waits its counter is in use. Threads as `locking` says.
//
// Counters change deep inside of endpoints, where nothing can be started. So the queue is an
// engine: it notes the change, and the next progress() starts the operations that are due.
class TriggerQueue final : public Engine, Counter::Watcher {
 public:
  // An operation and what it waits for, whose counter is in use as long as this lives.
  struct QueuedOperation {
    Waiting waiting;
    Use use;
    std::unique_ptr<Deferred> operation;
  };
  using OperationList = std::list<QueuedOperation>;

  // Errors: those of eventfd(2).
  static Result<std::unique_ptr<TriggerQueue>> open(const Locking& locking);

  // Takes an operation and starts it at once if it is due.
  void submit(const Waiting& waiting, std::unique_ptr<Deferred> operation);
  // Gives back the operations that `which` chooses of those not started. When it returns none of
  // them is being started.
  OperationList withdraw(const std::function<bool(const Waiting&)>& which);
  // As progress(), but for memory that runs out: an operation that could not be started is tried
  // again by the next progress().
  void try_progress() noexcept;

  void progress() override;
  bool fall_asleep() override;
  void wake_up() override;
  int wake_fd() const override { return event_.fd(); }
  unsigned polls() override { return polls_.load(std::memory_order_relaxed); }

 private:
  using Counters = std::unordered_map<Counter*, OperationList>;

  TriggerQueue(const Locking& locking, os::Event event)
      : lock_(locking), event_(std::move(event)) {}
  void reached() override;
  static bool due(const Waiting& waiting);
  static void insert(OperationList& entries, OperationList& one);
  Counters::iterator settle(Counters::iterator entries);
  void collect();
  void start_due();

  OptionalLock lock_;
  Counters waiting_;                  // none empty, each in the order of thresholds
  OperationList due_;                 // in the order in which they became due
  std::atomic<bool> noted_{false};    // a counter has come to where something may be due
  std::atomic<bool> held_up_{false};  // something due could not be started yet
  std::atomic<int> sleepers_{0};
  std::atomic<unsigned> polls_{0};
  os::Event event_;
};

}  // namespace weft::device
