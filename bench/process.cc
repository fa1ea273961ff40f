// SPDX-License-Identifier: BSD-2-Clause
// How the processes are bound to cores and ended.
#include "process.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>

#include "failure.h"

namespace weft::bench {
namespace {

constexpr unsigned kGraceSeconds = 2;

// Only for the signal handlers, which take no argument of ours.
volatile sig_atomic_t child_failed = 0;
volatile sig_atomic_t ending = 0;

// An alarm in so many seconds, and then again and again: where another handler has interrupted that
// of the first one and hangs, the next one ends the process.
void set_alarm(unsigned seconds) {
  const itimerval when{{kGraceSeconds, 0}, {static_cast<time_t>(seconds), 0}};
  setitimer(ITIMER_REAL, &when, nullptr);
}

// First politely, because some providers remove their shared memory files on SIGTERM. Others
// call exit() in their handler for it and hang: an alarm ends those.
void end_soon() {
  ending = 1;
  set_alarm(kGraceSeconds);
  raise(SIGTERM);
}

void on_alarm(int) {
  if (ending != 0) _exit(1);
  constexpr char kMessage[] = "weft_bench: time limit reached\n";
  [[maybe_unused]] const auto written = write(STDERR_FILENO, kMessage, sizeof kMessage - 1);
  end_soon();
}

void on_parent_ended(int) { end_soon(); }

void note_end(int status) {
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) child_failed = 1;
}

void on_child_ended(int) {
  const int interrupted = errno;
  int status = 0;
  while (waitpid(-1, &status, WNOHANG) > 0) note_end(status);
  errno = interrupted;
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

void raise_descriptor_limit() {
  rlimit limit{};
  check_system(getrlimit(RLIMIT_NOFILE, &limit), "getrlimit");
  limit.rlim_cur = limit.rlim_max;
  check_system(setrlimit(RLIMIT_NOFILE, &limit), "setrlimit of RLIMIT_NOFILE");
}

void enter_network(const std::string& file) {
  const int network = open(file.c_str(), O_RDONLY | O_CLOEXEC);
  check_system(network, file);
  check_system(setns(network, CLONE_NEWNET), "setns to " + file);
  close(network);
}

void set_time_limit(unsigned seconds) {
  handle(SIGALRM, on_alarm);
  set_alarm(seconds);
}

void watch_children() { handle(SIGCHLD, on_child_ended); }

bool a_child_failed() { return child_failed != 0; }

void end_with_parent(pid_t parent) {
  handle(SIGUSR1, on_parent_ended);
  check_system(prctl(PR_SET_PDEATHSIG, SIGUSR1), "prctl");
  if (getppid() != parent) _exit(1);  // it ended before the call
}

bool wait_for_children() {
  handle(SIGCHLD, SIG_DFL);
  int status = 0;
  while (waitpid(-1, &status, 0) > 0) note_end(status);
  return child_failed == 0;
}

}  // namespace weft::bench
