// SPDX-License-Identifier: BSD-2-Clause
// How the processes are bound to cores and ended.
#include "process.h"

#include <sched.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>

#include "failure.h"

namespace weft::bench {
namespace {

constexpr unsigned kGraceSeconds = 2;

// Only for the signal handlers, which take no argument of ours.
volatile sig_atomic_t watched_child = 0;
volatile sig_atomic_t child_failed = 0;
volatile sig_atomic_t limit_reached = 0;

// First politely, because some providers remove their shared memory files on SIGTERM. Others
// call exit() in their handler for it and hang: a second alarm ends those.
void on_time_limit(int) {
  if (limit_reached != 0) {
    if (watched_child > 0) kill(watched_child, SIGKILL);
    _exit(1);
  }
  limit_reached = 1;
  constexpr char kMessage[] = "weft_bench: time limit reached\n";
  [[maybe_unused]] const auto written = write(STDERR_FILENO, kMessage, sizeof kMessage - 1);
  alarm(kGraceSeconds);
  if (watched_child > 0) kill(watched_child, SIGTERM);
  raise(SIGTERM);
}

// Does not reap: wait_for() does.
void on_child_ended(int) {
  siginfo_t info{};
  const auto child = static_cast<id_t>(watched_child);
  if (waitid(P_PID, child, &info, WEXITED | WNOHANG | WNOWAIT) != 0 || info.si_pid == 0) return;
  if (info.si_code != CLD_EXITED || info.si_status != 0) child_failed = 1;
}

void handle(int signal, void (*handler)(int)) {
  struct sigaction action {};
  action.sa_handler = handler;
  action.sa_flags = SA_RESTART | SA_NODEFER;
  check_system(sigaction(signal, &action, nullptr), "sigaction");
}

}  // namespace

Cores choose_cores(const std::optional<std::pair<int, int>>& wanted) {
  if (wanted) return {wanted->first, wanted->second};
  cpu_set_t allowed;
  check_system(sched_getaffinity(0, sizeof allowed, &allowed), "sched_getaffinity");
  Cores cores{-1, -1};
  for (int core = 0; core < CPU_SETSIZE; ++core) {
    if (!CPU_ISSET(core, &allowed)) continue;
    if (cores.server < 0) cores.server = core;
    cores.client = core;
  }
  return cores;
}

void pin_to(int core) {
  cpu_set_t only;
  CPU_ZERO(&only);
  CPU_SET(core, &only);
  check_system(sched_setaffinity(0, sizeof only, &only), "sched_setaffinity");
}

void set_time_limit(unsigned seconds) {
  handle(SIGALRM, on_time_limit);
  alarm(seconds);
}

void watch_child(pid_t child) {
  watched_child = child;
  handle(SIGCHLD, on_child_ended);
  on_child_ended(SIGCHLD);  // it may have ended before the handler was there
}

bool watched_child_failed() { return child_failed != 0; }

void end_with_parent(pid_t parent) {
  check_system(prctl(PR_SET_PDEATHSIG, SIGTERM), "prctl");
  if (getppid() != parent) _exit(1);  // it ended before the call
}

bool wait_for(pid_t child) {
  int status = 0;
  check_system(waitpid(child, &status, 0), "waitpid");
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

}  // namespace weft::bench
