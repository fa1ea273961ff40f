// SPDX-License-Identifier: BSD-2-Clause
// How does a test hold another process at an exact place?
#include "tracee.h"

#include <signal.h>
#include <sys/ptrace.h>
#include <sys/wait.h>

#include <cstdint>

#include "failure.h"

namespace weft::faults {

namespace {

constexpr int kSyscallStop = SIGTRAP | 0x80;  // PTRACE_O_TRACESYSGOOD

// True if a process that stopped for a system call is about to make that one.
bool enters(pid_t process, long number) {
  __ptrace_syscall_info info = {};
  if (ptrace(PTRACE_GET_SYSCALL_INFO, process, sizeof info, &info) <= 0) return false;
  return info.op == PTRACE_SYSCALL_INFO_ENTRY &&
         info.entry.nr == static_cast<std::uint64_t>(number);
}

}  // namespace

Tracee::Tracee(pid_t process) : process_(process) {
  if (ptrace(PTRACE_SEIZE, process, nullptr, PTRACE_O_TRACESYSGOOD | PTRACE_O_EXITKILL) != 0) {
    return;
  }
  int status = 0;
  held_ = ptrace(PTRACE_INTERRUPT, process, nullptr, nullptr) == 0 &&
          waitpid(process, &status, 0) == process && WIFSTOPPED(status);
}

Tracee::~Tracee() { let_go(); }

void Tracee::hold_at(long number) {
  long signal = 0;
  for (;;) {
    require(ptrace(PTRACE_SYSCALL, process_, nullptr, signal) == 0, "PTRACE_SYSCALL");
    int status = 0;
    require(waitpid(process_, &status, 0) == process_ && WIFSTOPPED(status),
            "a process ended that was to be held in a system call");
    const int stop = WSTOPSIG(status);
    if (stop == kSyscallStop && enters(process_, number)) return;
    // A stop of ptrace's own is no signal for the process.
    signal = stop == kSyscallStop || status >> 16 != 0 ? 0 : stop;
  }
}

void Tracee::let_go() {
  if (held_) ptrace(PTRACE_DETACH, process_, nullptr, nullptr);
  held_ = false;
}

}  // namespace weft::faults
