// SPDX-License-Identifier: BSD-2-Clause
// What makes progress when a program polls or waits, and how does it sleep?
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <vector>

#include "base/result.h"
#include "os/event.h"
#include "os/optional_lock.h"

namespace weft::device {

// Something that has to be driven: an endpoint. All functions may be called by any thread that the
// program's threading model lets in.
class Engine {
 public:
  virtual ~Engine() = default;
  // Takes in what arrived and goes on with what is pending.
  virtual void progress() = 0;
  // Arranges that arrivals make wake_fd() readable until wake_up(). False when there is something
  // to do at once. Calls nest: every one, whatever it returned, needs its wake_up().
  virtual bool fall_asleep() = 0;
  virtual void wake_up() = 0;
  // Readable when asleep and something has arrived.
  virtual int wake_fd() const = 0;
  // Changes with every progress(): tells a watcher whether others drive this engine. Any thread.
  virtual unsigned polls() { return 0; }
  // Arrivals that progress() has taken, how many of these were late: they had waited while no
  // thread drove the engine, nor slept on it; and how many came while no thread was polling. All
  // wrap around. Any thread.
  struct Arrivals {
    unsigned taken = 0;
    unsigned late = 0;
    unsigned unpolled = 0;
  };
  virtual Arrivals arrivals() { return {}; }
  // Interval between checks of polls(). If the others stop polling, an arrival waits for at most so
  // long.
  virtual std::chrono::nanoseconds check_interval() const { return std::chrono::milliseconds(4); }
};

// How one waits for news: not at all, looking again and again, or asleep on a descriptor.
enum class WaitKind { kNone, kYield, kDescriptor };

// The engines behind one completion queue or counter, and the sleep of threads that wait for it.
class EngineGroup {
 public:
  EngineGroup(const Locking& locking, WaitKind kind) : lock_(locking), kind_(kind) {}

  // Opens what waiting needs; before the first use. Errors: EMFILE and others of epoll and eventfd.
  Status open();
  // An engine takes part from now on, or not any more: on return no thread that drives the group is
  // inside it. Attaching twice counts once. Control calls: any thread, whatever `locking` says.
  Status attach(Engine& engine);
  void detach(Engine& engine);

  // Drives every engine, unless another thread is doing so. Ends a sleep begun by prepare_wait().
  // Yields the processor now and then when it has been called kIdlePolls times without any news:
  // the peer may need it. Not from within an engine.
  void progress();
  // The two parts of progress(): the first for a caller on a visit to the domain, the second, which
  // may yield, for one outside.
  void drive();
  void count_poll();

  // Tells a sleeping thread that there is news; any thread, also from within progress().
  void notify() {
    idle_polls_.store(0, std::memory_order_relaxed);
    if (asleep_.load(std::memory_order_seq_cst)) event_.set();
  }
  // Makes one wait() return early, or the next one if no thread waits (fi_cq_signal(3)).
  void signal();
  // Takes a signal() that has not been noticed yet; true when there was one.
  bool take_signal() { return signalled_.exchange(false); }

  // Drives the engines and sleeps until `ready` holds (true), or the time is over or signal() was
  // called (false). Negative: no limit. The thread may be cancelled while it sleeps, or has looked
  // in vain and is about to (os/cancellation.h); for the others this is as if it had returned.
  bool wait(std::chrono::milliseconds timeout, const std::function<bool()>& ready) {
    return wait(timeout, ready, false);
  }
  // The same without a limit, as read(2): false also when a signal handler has interrupted the
  // sleep on the descriptors and system calls do not restart (os::handlers_restart_calls()).
  bool wait_as_read(const std::function<bool()>& ready) {
    return wait(std::chrono::milliseconds(-1), ready, true);
  }

  // For programs that wait on descriptor() by themselves (fi_trywait(3)): true when they may,
  // because nothing is there and anything new will make the descriptor readable.
  bool prepare_wait(const std::function<bool()>& ready);
  // Ends what prepare_wait() began, without driving anything: what sleeps on descriptor() looks.
  // Any thread, as attach().
  void end_wait();
  // Readable after prepare_wait() when there is news; -1 unless the kind is kDescriptor.
  int descriptor() const { return kind_ == WaitKind::kDescriptor ? set_.fd() : -1; }

 private:
  // About 0.3 ms within a host, many times the longest round trip of a peer that runs.
  static constexpr unsigned kIdlePolls = 4096;
  // A yield costs 0.3 us even where no other thread wants the processor, these polls some 20 us.
  static constexpr unsigned kPollsPerYield = 256;

  class Lead;
  bool fall_asleep(const std::function<bool()>& ready);
  bool wait(std::chrono::milliseconds timeout, const std::function<bool()>& ready,
            bool interruptible);
  bool sleep(std::chrono::nanoseconds limit);
  void wake_up();
  bool take_the_lead();
  void announce(bool leaving);
  void follow(std::chrono::steady_clock::time_point until, const std::function<bool()>& ready);

  OptionalLock lock_;
  const WaitKind kind_;
  std::vector<Engine*> engines_;
  std::vector<Engine*> sleeping_;  // those that must be told to wake up
  std::atomic<bool> asleep_{false};
  std::atomic<bool> signalled_{false};
  std::atomic<unsigned> idle_polls_{0};  // since the last news, less those before the last yield
  os::Event event_;
  os::EventSet set_;
  // Of the threads inside wait() one sleeps on the descriptors; the others follow it, so that none
  // takes a wake-up that another needed.
  std::mutex lead_mutex_;
  std::condition_variable lead_changed_;
  bool led_ = false;
};

}  // namespace weft::device
