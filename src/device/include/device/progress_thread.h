// SPDX-License-Identifier: BSD-2-Clause
// What drives an engine that its program does not poll? (fi_domain(3), FI_PROGRESS_AUTO)
#pragma once

#include <atomic>
#include <chrono>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "base/result.h"
#include "base/time.h"
#include "device/backoff.h"
#include "device/engine.h"
#include "os/event.h"
#include "os/thread.h"

namespace weft::device {

// The background thread of this process. It lets the engines sleep and sleeps until one is woken
// up; as long as the program drives an engine itself, it only looks now and then whether that goes
// on. A program that polls between long pauses leaves arrivals waiting: the thread then serves the
// engine beside the program while it finds something there. Any thread may call.
class ProgressThread {
 public:
  // The one of this process. It begins with the first start() and ends with its last user. Errors:
  // EMFILE of eventfd(2).
  static Result<std::shared_ptr<ProgressThread>> get();
  ~ProgressThread();
  ProgressThread(const ProgressThread&) = delete;
  ProgressThread& operator=(const ProgressThread&) = delete;

  // Begins, unless it has begun already. May be called from within an engine. Errors: EAGAIN of
  // pthread_create(3), and then another call tries again.
  Status start();
  // Drives `engine` from when it begins on.
  void attach(Engine& engine);
  // Leaves it alone; on return the thread is not inside it any more.
  void detach(Engine& engine);
  // Tells that the wake_fd() of an engine is another one now.
  void look_again() { event_.set(); }

 private:
  // An engine and how far it is with it.
  struct Charge {
    Engine* engine = nullptr;
    bool asleep = false;         // the engine is, on our behalf
    bool woken = false;          // and its descriptor became readable
    unsigned polls = 0;          // its count when the thread left it
    unsigned polls_between = 0;  // those of others before the thread came back
    Engine::Arrivals arrivals;   // when the thread looked last
    // How often more the thread serves it in vain although the program polls it.
    unsigned attempts = 0;
    Time due{};                 // when to look at it again, unless it is woken
    Time slept_at{};            // when it fell asleep on our behalf
    unsigned short_sleeps = 0;  // in succession
    Backoff backoff;
  };
  // What a fork of the process has to take care of.
  struct Forks;

  ProgressThread() = default;
  void run();
  std::chrono::nanoseconds look_after_all();
  static std::chrono::nanoseconds look_after(Charge& charge, Time now);
  static bool leaves_to_program(Charge& charge);
  static std::chrono::nanoseconds serve(Charge& charge);
  static void look_on(Charge& charge);
  void sleep(std::unique_lock<std::mutex>& lock, std::chrono::nanoseconds limit);
  void abandon();

  os::Event event_;
  std::mutex mutex_;  // held by the thread except while it sleeps
  std::vector<Charge> charges_;
  unsigned changes_ = 0;  // of charges_
  bool stopping_ = false;
  os::PollList list_;  // the thread's
  // What start() changes has a lock of its own, the last to be taken: the thread holds the other
  // one while it is inside of engines.
  std::mutex beginning_;
  std::atomic<bool> begun_{false};
  os::Thread thread_;
};

// An engine that the thread drives for as long as this object exists. The engine outlives it.
class DrivenEngine {
 public:
  DrivenEngine() = default;
  DrivenEngine(std::shared_ptr<ProgressThread> thread, Engine& engine)
      : thread_(std::move(thread)), engine_(&engine) {
    thread_->attach(engine);
  }
  DrivenEngine(DrivenEngine&& other) noexcept = default;
  DrivenEngine& operator=(DrivenEngine&& other) noexcept {
    release();
    thread_ = std::move(other.thread_);
    engine_ = other.engine_;
    return *this;
  }
  ~DrivenEngine() { release(); }

 private:
  void release() {
    if (thread_ != nullptr) thread_->detach(*engine_);
    thread_.reset();
  }

  std::shared_ptr<ProgressThread> thread_;
  Engine* engine_ = nullptr;
};

}  // namespace weft::device
