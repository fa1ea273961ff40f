// SPDX-License-Identifier: BSD-2-Clause
// What makes progress when a program polls or waits, and how does it sleep?
#include "device/engine.h"

#include <algorithm>
#include <mutex>
#include <thread>
#include <utility>

#include "device/backoff.h"
#include "os/cancellation.h"
#include "os/user_memory.h"

namespace weft::device {
namespace {

using Clock = std::chrono::steady_clock;

// Being woken costs as much as many polls: it pays to look for this long first.
constexpr auto kSpin = std::chrono::microseconds(20);
// A sleeper looks by itself this often whether its peers still live.
constexpr auto kLongestSleep = std::chrono::milliseconds(500);

}  // namespace

Status EngineGroup::open() {
  if (kind_ != WaitKind::kDescriptor) return {};
  auto event = os::Event::create();
  if (!event) return event.error();
  auto set = os::EventSet::create();
  if (!set) return set.error();
  event_ = std::move(event).value();
  set_ = std::move(set).value();
  return set_.add(event_.fd());
}

Status EngineGroup::attach(Engine& engine) {
  const ControlGuard guard(lock_);
  if (std::find(engines_.begin(), engines_.end(), &engine) != engines_.end()) return {};
  if (kind_ == WaitKind::kDescriptor) {
    if (Status ok = set_.add(engine.wake_fd()); !ok) return ok;
  }
  if (asleep_.load(std::memory_order_relaxed)) wake_up();
  engines_.push_back(&engine);
  return {};
}

void EngineGroup::detach(Engine& engine) {
  const ControlGuard guard(lock_);
  if (std::erase(engines_, &engine) == 0) return;
  if (kind_ == WaitKind::kDescriptor) set_.remove(engine.wake_fd());
  if (std::erase(sleeping_, &engine) != 0) engine.wake_up();
}

void EngineGroup::drive() {
  const std::unique_lock guard(lock_.inner(), std::try_to_lock);
  if (!guard.owns_lock()) return;
  if (asleep_.load(std::memory_order_relaxed)) [[unlikely]]
    wake_up();
  for (Engine* engine : engines_) engine->progress();
}

void EngineGroup::progress() {
  {
    const ExclusiveEntry entry(lock_.biased_lock());
    drive();
  }
  count_poll();
}

// Two threads that poll at once may miss a count of each other: the yield comes later then.
void EngineGroup::count_poll() {
  os::keep_faults_unblocked();
  const unsigned polls = idle_polls_.load(std::memory_order_relaxed) + 1;
  if (polls < kIdlePolls) [[likely]]
    return idle_polls_.store(polls, std::memory_order_relaxed);
  idle_polls_.store(kIdlePolls - kPollsPerYield, std::memory_order_relaxed);
  std::this_thread::yield();
}

void EngineGroup::signal() {
  signalled_.store(true);
  if (kind_ == WaitKind::kDescriptor) event_.set();
}

bool EngineGroup::fall_asleep(const std::function<bool()>& ready) {
  event_.clear();
  asleep_.store(true, std::memory_order_seq_cst);
  bool quiet = true;
  for (Engine* engine : engines_) {
    sleeping_.push_back(engine);
    if (!engine->fall_asleep()) quiet = false;
  }
  return quiet && !ready() && !signalled_.load();
}

// From here on arrivals do not signal: every sleeping thread must look, and go to sleep again.
void EngineGroup::wake_up() {
  asleep_.store(false, std::memory_order_relaxed);
  event_.set();
  for (Engine* engine : sleeping_) engine->wake_up();
  sleeping_.clear();
}

bool EngineGroup::prepare_wait(const std::function<bool()>& ready) {
  progress();
  if (ready()) return false;
  const Section section(lock_);
  if (asleep_.load(std::memory_order_relaxed)) wake_up();
  if (fall_asleep(ready)) return true;
  wake_up();
  return false;
}

void EngineGroup::end_wait() {
  const ControlGuard guard(lock_);
  if (asleep_.load(std::memory_order_relaxed)) wake_up();
}

// True when this thread is the one that sleeps on the descriptors from now on.
bool EngineGroup::take_the_lead() {
  const std::lock_guard guard(lead_mutex_);
  return !std::exchange(led_, true);
}

// Makes the followers look: everything later wakes the leader again, or there is no leader now.
void EngineGroup::announce(bool leaving) {
  const std::lock_guard guard(lead_mutex_);
  if (leaving) led_ = false;
  lead_changed_.notify_all();
}

// Sleeps while another thread leads and has no news for this one. Driving the engines meanwhile
// would wake the leader, and the leader this one, without end.
void EngineGroup::follow(Clock::time_point until, const std::function<bool()>& ready) {
  std::unique_lock guard(lead_mutex_);
  lead_changed_.wait_until(guard, until, [&] { return !led_ || ready(); });
}

// The lead of one call of wait(). It ends with the call, also when the thread is cancelled in it.
class EngineGroup::Lead {
 public:
  explicit Lead(EngineGroup& group) : group_(group) {}
  ~Lead() {
    if (taken_) group_.announce(true);
  }
  Lead(const Lead&) = delete;
  Lead& operator=(const Lead&) = delete;

  // True when this thread has it, from now on or since an earlier call.
  bool take() { return taken_ || (taken_ = group_.take_the_lead()); }

 private:
  EngineGroup& group_;
  bool taken_ = false;
};

// After prepare_wait(): the next progress() ends the sleep, or, if the thread is cancelled, this.
// False when a signal handler has interrupted it.
bool EngineGroup::sleep(std::chrono::nanoseconds limit) {
  struct Awakening {
    EngineGroup* group;
    ~Awakening() {
      if (group != nullptr) group->end_wait();
    }
  } awakening{this};
  const bool whole =
      os::sleep_or_cancelled(set_.fd(), std::chrono::ceil<std::chrono::milliseconds>(limit));
  awakening.group = nullptr;
  return whole;
}

bool EngineGroup::wait(std::chrono::milliseconds timeout, const std::function<bool()>& ready,
                       bool interruptible) {
  const auto begin = Clock::now();
  const auto end = timeout.count() < 0 ? Clock::time_point::max() : begin + timeout;
  Lead lead(*this);
  Backoff backoff;
  bool interrupted = false;
  for (auto now = begin;; now = Clock::now()) {
    progress();
    if (ready()) return true;
    if (interrupted && interruptible && !os::handlers_restart_calls()) return false;
    if (signalled_.exchange(false) || now >= end) return false;
    if (now - begin < kSpin) continue;
    if (kind_ != WaitKind::kDescriptor) {
      os::cancellation_point();
      std::this_thread::yield();
      continue;
    }
    const auto until = std::min(end, now + kLongestSleep);
    if (!lead.take()) {
      follow(until, ready);
      continue;
    }
    if (!prepare_wait(ready)) {
      os::cancellation_point();
      os::nap(std::min<Clock::duration>(backoff.next(), end - now));
      continue;
    }
    backoff.reset();
    announce(false);
    interrupted = !sleep(until - now);
  }
}

}  // namespace weft::device
