// SPDX-License-Identifier: BSD-2-Clause
// How does a test stop a child process at an exact place? At its system calls (ptrace(2)).
#pragma once

#include <signal.h>
#include <sys/ptrace.h>
#include <sys/types.h>
#include <sys/wait.h>

#include <atomic>
#include <functional>
#include <future>
#include <thread>

namespace weft::os {

// Calls `at_entry` with the number of each system call that the main thread of a child process is
// about to begin; the child stands still until that returns. Ends the child, which its parent still
// has to wait for, when destroyed: at_entry must return by then.
class TracedProcess {
 public:
  TracedProcess(pid_t child, std::function<void(long)> at_entry)
      : child_(child), at_entry_(std::move(at_entry)) {
    std::promise<bool> begun;
    auto answer = begun.get_future();
    // Only the thread that attaches may trace.
    thread_ = std::thread([this, &begun] { run(begun); });
    ok_ = answer.get();
  }
  ~TracedProcess() {
    if (ok_) ::kill(child_, SIGKILL);
    thread_.join();
  }
  TracedProcess(const TracedProcess&) = delete;
  TracedProcess& operator=(const TracedProcess&) = delete;

  // False where processes may not be traced.
  bool ok() const { return ok_; }

 private:
  // False when the child has ended; it is left to be waited for.
  bool await_stop(int& status) const {
    siginfo_t info{};
    const int what = WEXITED | WSTOPPED;
    while (::waitid(P_PID, static_cast<id_t>(child_), &info, what | WNOWAIT | __WALL) != 0) {
      if (errno != EINTR) return false;
    }
    const bool stopped = info.si_code == CLD_TRAPPED || info.si_code == CLD_STOPPED;
    return stopped && ::waitpid(child_, &status, __WALL) == child_;
  }

  long entered_call() const {
    __ptrace_syscall_info info{};
    const auto size = reinterpret_cast<void*>(sizeof info);
    if (::ptrace(PTRACE_GET_SYSCALL_INFO, child_, size, &info) <= 0) return -1;
    return info.op == PTRACE_SYSCALL_INFO_ENTRY ? static_cast<long>(info.entry.nr) : -1;
  }

  void run(std::promise<bool>& begun) {
    const auto options = reinterpret_cast<void*>(PTRACE_O_TRACESYSGOOD | PTRACE_O_EXITKILL);
    int status = 0;
    const bool seized = ::ptrace(PTRACE_SEIZE, child_, nullptr, options) == 0 &&
                        ::ptrace(PTRACE_INTERRUPT, child_, nullptr, nullptr) == 0 &&
                        await_stop(status);
    begun.set_value(seized);
    long signal = 0;
    while (seized) {
      ::ptrace(PTRACE_SYSCALL, child_, nullptr, signal);
      if (!await_stop(status)) return;
      const int why = WSTOPSIG(status);
      const bool at_call = why == (SIGTRAP | 0x80);
      // Signals go on to the child; what ptrace itself reports is none.
      signal = at_call || why == SIGTRAP ? 0 : why;
      if (const long number = at_call ? entered_call() : -1; number >= 0) at_entry_(number);
    }
  }

  const pid_t child_;
  const std::function<void(long)> at_entry_;
  bool ok_ = false;
  std::thread thread_;
};

// Holds whatever passes it from close() until open().
class Gate {
 public:
  void close() { state_ = kClosed; }
  void open() {
    state_ = kOpen;
    state_.notify_all();
  }
  // Returns at once unless the gate is closed; then when it is opened.
  void pass() {
    int closed = kClosed;
    if (!state_.compare_exchange_strong(closed, kHolding)) return;
    state_.notify_all();
    state_.wait(kHolding);
  }
  bool holding() const { return state_ == kHolding; }
  void await_holding() {
    for (int now = state_; now != kHolding; now = state_) state_.wait(now);
  }

 private:
  static constexpr int kOpen = 0;
  static constexpr int kClosed = 1;
  static constexpr int kHolding = 2;
  std::atomic<int> state_{kOpen};
};

}  // namespace weft::os
