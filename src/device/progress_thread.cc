// SPDX-License-Identifier: BSD-2-Clause
// What drives an engine that its program does not poll? (fi_domain(3), FI_PROGRESS_AUTO)
#include "device/progress_thread.h"

#include <algorithm>
#include <new>
#include <utility>

#include "os/at_fork.h"

namespace weft::device {
namespace {

using std::chrono::nanoseconds;

// It looks by itself this often whether peers still live, where their end cannot wake it.
constexpr nanoseconds kNap = std::chrono::milliseconds(500);
// Late arrivals make it serve an engine that the program polls, until it found so much more often
// nothing there than an arrival that the program would have left waiting. One in eight has to be
// late: fewer are those that came while the scheduler kept a polling program from its processor.
constexpr unsigned kAttempts = 8;
constexpr unsigned kLateOf = 8;
// Fewer polls between two arrivals are those of a program that sleeps on a descriptor of its own.
constexpr unsigned kPolling = 4;
// After several short sleeps in succession it looks on for as long before it sleeps again, as long
// as that finds something; others wait for it no longer than the last time.
constexpr nanoseconds kShortSleep = std::chrono::microseconds(20);
constexpr unsigned kShortSleeps = 8;
constexpr nanoseconds kLongestLook = std::chrono::milliseconds(1);

}  // namespace

// A forked child has the parent's memory but not its thread. So no thread may be inside an engine
// during fork(2), and the child must not wait for the thread.
struct ProgressThread::Forks {
  std::mutex mutex;
  std::weak_ptr<ProgressThread> current;
  ProgressThread* live = nullptr;

  static Forks& heeded;
  static os::AtFork at_fork;

  void before() {
    mutex.lock();
    if (live == nullptr) return;
    live->mutex_.lock();
    live->beginning_.lock();
  }
  void in_parent() {
    if (live != nullptr) let_on();
    mutex.unlock();
  }
  void in_child() {
    if (live != nullptr) {
      live->abandon();
      let_on();
    }
    live = nullptr;
    current.reset();
    mutex.unlock();
  }

 private:
  void let_on() const {
    live->beginning_.unlock();
    live->mutex_.unlock();
  }
};

// Outlives every static destructor.
ProgressThread::Forks& ProgressThread::Forks::heeded = *new Forks;
os::AtFork ProgressThread::Forks::at_fork(
    5, [] { heeded.before(); }, [] { heeded.in_parent(); }, [] { heeded.in_child(); });

Result<std::shared_ptr<ProgressThread>> ProgressThread::get() {
  Forks& forks = Forks::heeded;
  const std::lock_guard guard(forks.mutex);
  if (auto present = forks.current.lock()) return present;
  auto event = os::Event::create();
  if (!event) return event.error();
  std::shared_ptr<ProgressThread> created(new ProgressThread);
  created->event_ = std::move(event).value();
  forks.current = created;
  forks.live = created.get();
  return created;
}

Status ProgressThread::start() {
  if (begun_.load(std::memory_order_acquire)) return {};
  const std::lock_guard guard(beginning_);
  if (begun_.load(std::memory_order_relaxed)) return {};
  auto thread = os::Thread::start([this] { run(); });
  if (!thread) return thread.error();
  thread_ = std::move(thread).value();
  begun_.store(true, std::memory_order_release);
  return {};
}

ProgressThread::~ProgressThread() {
  {
    Forks& forks = Forks::heeded;
    const std::lock_guard guard(forks.mutex);
    if (forks.live == this) forks.live = nullptr;
  }
  {
    const std::lock_guard guard(mutex_);
    stopping_ = true;
  }
  event_.set();
}

void ProgressThread::abandon() {
  charges_.clear();
  thread_.forget();
}

void ProgressThread::attach(Engine& engine) {
  {
    const std::lock_guard guard(mutex_);
    Charge charge;
    charge.engine = &engine;
    charges_.push_back(charge);
    ++changes_;
  }
  event_.set();
}

void ProgressThread::detach(Engine& engine) {
  const std::lock_guard guard(mutex_);
  const auto charge = std::find_if(charges_.begin(), charges_.end(),
                                   [&](const Charge& one) { return one.engine == &engine; });
  if (charge == charges_.end()) return;
  if (charge->asleep) engine.wake_up();
  charges_.erase(charge);
  ++changes_;
  event_.set();
}

// True when the program polls the engine, and often enough.
bool ProgressThread::leaves_to_program(Charge& charge) {
  Engine& engine = *charge.engine;
  const Engine::Arrivals arrivals = engine.arrivals();
  const Engine::Arrivals before = std::exchange(charge.arrivals, arrivals);
  const unsigned late = arrivals.late - before.late;
  if (late * kLateOf > arrivals.taken - before.taken) charge.attempts = kAttempts;
  const unsigned polls = engine.polls();
  charge.polls_between = polls - std::exchange(charge.polls, polls);
  return charge.polls_between != 0 && charge.attempts == 0;
}

// Looks on for arrivals that follow at once: a wake-up takes longer than they do.
void ProgressThread::look_on(Charge& charge) {
  Engine& engine = *charge.engine;
  Time now = Time::clock::now();
  const Time last = now + kLongestLook;
  bool found = false;
  for (Time end = now + kShortSleep; now < end; now = Time::clock::now()) {
    if (engine.polls() != charge.polls) break;  // the program polls
    const unsigned taken = engine.arrivals().taken;
    engine.progress();
    charge.polls = engine.polls();
    if (engine.arrivals().taken == taken) continue;
    found = true;
    end = std::min(now + kShortSleep, last);
  }
  if (!found) charge.short_sleeps = 0;
}

// Does what is to be done for an engine that is awake, and says how long nothing will be.
nanoseconds ProgressThread::serve(Charge& charge) {
  Engine& engine = *charge.engine;
  if (leaves_to_program(charge)) {
    charge.backoff.reset();
    return engine.check_interval();
  }
  const Engine::Arrivals before = engine.arrivals();
  engine.progress();
  charge.polls = engine.polls();
  const Engine::Arrivals after = engine.arrivals();
  const bool found = after.taken != before.taken;
  if (charge.attempts != 0) {
    const bool needed =
        after.unpolled != before.unpolled || (found && charge.polls_between < kPolling);
    charge.attempts = needed ? std::min(charge.attempts + 1, kAttempts) : charge.attempts - 1;
  }
  if (found && charge.short_sleeps == kShortSleeps) look_on(charge);
  charge.asleep = true;  // also if it throws: the next visit wakes it up
  if (engine.fall_asleep()) {
    charge.backoff.reset();
    charge.slept_at = Time::clock::now();
    return kNap;
  }
  charge.asleep = false;
  engine.wake_up();
  return charge.backoff.next();
}

// Others may need the thread more often than this engine does.
nanoseconds ProgressThread::look_after(Charge& charge, Time now) {
  if (!charge.woken && now < charge.due) return charge.due - now;
  if (charge.asleep) {
    charge.engine->wake_up();
    const bool is_short = charge.woken && now - charge.slept_at < kShortSleep;
    charge.short_sleeps = is_short ? std::min(charge.short_sleeps + 1, kShortSleeps) : 0;
  }
  charge.asleep = charge.woken = false;
  const nanoseconds pause = serve(charge);
  charge.due = now + pause;
  return pause;
}

nanoseconds ProgressThread::look_after_all() {
  const Time now = std::chrono::steady_clock::now();
  nanoseconds limit = kNap;
  for (Charge& charge : charges_) {
    try {
      limit = std::min(limit, look_after(charge, now));
    } catch (const std::bad_alloc&) {
      // As when a program's own call answers -FI_ENOMEM: there may be memory later.
      limit = std::min(limit, charge.engine->check_interval());
    }
  }
  return limit;
}

// Lets others in and sleeps, then marks the engines that there is something for.
void ProgressThread::sleep(std::unique_lock<std::mutex>& lock, nanoseconds limit) {
  list_.clear();
  list_.add(event_.fd());
  for (const Charge& charge : charges_) list_.add(charge.asleep ? charge.engine->wake_fd() : -1);
  const unsigned changes = changes_;
  lock.unlock();
  list_.wait(limit);
  lock.lock();
  for (std::size_t i = 0; i < charges_.size(); ++i) {
    charges_[i].woken = charges_[i].asleep && (changes != changes_ || list_.readable(i + 1));
  }
}

void ProgressThread::run() {
  std::unique_lock lock(mutex_);
  while (!stopping_) {
    if (list_.readable(0)) event_.clear();
    try {
      sleep(lock, look_after_all());
    } catch (const std::bad_alloc&) {
      // Before it slept: it looks after all of them once more.
    }
  }
}

}  // namespace weft::device
