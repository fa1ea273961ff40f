// SPDX-License-Identifier: BSD-2-Clause
// How do the tests of the link come by processes that they can kill?
#include "test_support.h"

#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>

namespace weft::shm::testing {

Child::Child(const std::function<void(Child&)>& body) {
  if (::pipe(to_child_) != 0 || ::pipe(to_parent_) != 0) std::abort();
  pid_ = ::fork();
  if (pid_ != 0) return;
  await_word();
  body(*this);
  ::_exit(0);
}

Child::~Child() {
  kill_it();
  for (const int fd : {to_child_[0], to_child_[1], to_parent_[0], to_parent_[1]}) ::close(fd);
}

void Child::tell() {
  const int fd = pid_ == 0 ? to_parent_[1] : to_child_[1];
  if (::write(fd, "x", 1) != 1) std::abort();
}

bool Child::await_word() {
  const int fd = pid_ == 0 ? to_child_[0] : to_parent_[0];
  pollfd entry{fd, POLLIN, 0};
  char word = 0;
  return ::poll(&entry, 1, 20000) == 1 && ::read(fd, &word, 1) == 1;
}

void Child::kill_it() {
  if (pid_ <= 0) return;
  ::kill(pid_, SIGKILL);
  ::waitpid(pid_, nullptr, 0);
  pid_ = -1;
}

}  // namespace weft::shm::testing
