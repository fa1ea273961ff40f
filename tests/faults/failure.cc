// SPDX-License-Identifier: BSD-2-Clause
// How does a process print what went wrong, even from inside a call that does not return?
#include "failure.h"

#include <rdma/fi_errno.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstring>
#include <initializer_list>

namespace weft::faults {

namespace {

char process_name[64] = "?";
char watched[256] = "";
constexpr char kLate[] = ": no end within the time allowed: ";

// Runs in a signal handler: only write and _exit.
void on_alarm(int) {
  for (const char* part :
       std::initializer_list<const char*>{"FAILED: ", process_name, kLate, watched, "\n"}) {
    if (write(STDERR_FILENO, part, strlen(part)) < 0) break;
  }
  _exit(kFailed);
}

}  // namespace

void name_this_process(const std::string& name) {
  std::snprintf(process_name, sizeof process_name, "%s", name.c_str());
}

void fail(const std::string& what) {
  std::fflush(stdout);
  std::fprintf(stderr, "FAILED: %s: %s\n", process_name, what.c_str());
  _exit(kFailed);
}

int skipped(const std::string& why) {
  std::printf("%s\n", why.c_str());
  return kSkipped;
}

std::string error_text(long status) {
  const int error = static_cast<int>(status < 0 ? -status : status);
  return std::string(fi_strerror(error)) + " (" + std::to_string(error) + ")";
}

void require_ok(long status, const std::string& call) {
  if (status != 0) fail(call + ": " + error_text(status));
}

Watchdog::Watchdog(const std::string& what, unsigned seconds) {
  std::snprintf(watched, sizeof watched, "%s", what.c_str());
  struct sigaction action = {};
  action.sa_handler = on_alarm;
  sigaction(SIGALRM, &action, nullptr);
  alarm(seconds);
}

Watchdog::~Watchdog() { alarm(0); }

}  // namespace weft::faults
