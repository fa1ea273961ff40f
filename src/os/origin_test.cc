// SPDX-License-Identifier: BSD-2-Clause
// Was an object made by this process, or inherited over a fork?
#include "os/origin.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

namespace weft::os {
namespace {

// In a child; the sum of 1, 2, 4 ... for those that hold.
template <class Body>
int in_child(Body body) {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(body());
  int status = -1;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

TEST(Origin, OnlyADescendantHasInheritedIt) {
  const Origin here;
  const Origin copy = here;
  EXPECT_FALSE(here.inherited());
  const int seen = in_child([&] {
    const Origin own;
    const int grandchild = in_child([&] { return (here.inherited() ? 1 : 0) + own.inherited(); });
    return (here.inherited() ? 1 : 0) + (copy.inherited() ? 2 : 0) + (own.inherited() ? 4 : 0) +
           8 * grandchild;
  });
  EXPECT_EQ(seen, 1 + 2 + 8 * 2);
  EXPECT_FALSE(here.inherited()) << "a fork changes nothing for the parent";
}

}  // namespace
}  // namespace weft::os
