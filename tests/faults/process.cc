// SPDX-License-Identifier: BSD-2-Clause
// How is a child process made and waited for?
#include "process.h"

#include <rdma/fabric.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "failure.h"

namespace weft::faults {

void load_library() {
  fi_info* providers = nullptr;
  require_ok(
      fi_getinfo(FI_VERSION(1, 17), nullptr, nullptr, FI_PROV_ATTR_ONLY, nullptr, &providers),
      "fi_getinfo");
  fi_freeinfo(providers);
}

Process::Process(std::string name, const std::function<int()>& life) : name_(std::move(name)) {
  std::fflush(nullptr);
  const pid_t parent = getpid();
  id_ = fork();
  require(id_ >= 0, "fork");
  if (id_ != 0) return;
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(kFailed);  // it had ended before
  std::exit(life());
}

Process::~Process() {
  if (!ended_) end();
}

void Process::end() const {
  kill(id_, SIGKILL);
  waitpid(id_, nullptr, 0);
  ended_ = true;
}

void Process::require_passed() const {
  int status = 0;
  require(waitpid(id_, &status, 0) == id_, "waitpid");
  ended_ = true;
  if (WIFSIGNALED(status)) fail(name_ + " was ended by a signal: " + strsignal(WTERMSIG(status)));
  if (WEXITSTATUS(status) != kPassed) _exit(WEXITSTATUS(status));
}

}  // namespace weft::faults
