// SPDX-License-Identifier: BSD-2-Clause
// How does a test do what it may do only in a process of its own, such as having networks?
#pragma once

#include <gtest/gtest.h>
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <functional>

namespace weft::os {

// Runs `body`, a part of a test, in a child process, where it returns false if it may not have what
// it needs: then the test is skipped, with a word on what that is. What fails there fails here.
inline void in_own_process(const char* needs, const std::function<bool()>& body) {
  constexpr int kNotPermitted = 77;
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    if (!body()) ::_exit(kNotPermitted);
    ::fflush(nullptr);
    ::_exit(::testing::Test::HasFailure() ? 1 : 0);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  if (WIFEXITED(status) && WEXITSTATUS(status) == kNotPermitted) {
    GTEST_SKIP() << needs << " may not be made here";
  }
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << "see what the child said";
}

// Leaves this process's network for an empty one; false when it may not.
inline bool enter_empty_network() {
  return ::unshare(CLONE_NEWNET) == 0 || ::unshare(CLONE_NEWUSER | CLONE_NEWNET) == 0;
}

}  // namespace weft::os
