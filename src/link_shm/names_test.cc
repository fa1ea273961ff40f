// SPDX-License-Identifier: BSD-2-Clause
// Does a probe identify one process, among the children of a fork server too?
#include "link_shm/names.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cerrno>

#include "test_support.h"

namespace weft::shm {
namespace {

using testing::Child;

void run_until_told(Child& me) {
  me.tell();
  me.await_word();
}

// The child has left fork(2) when this returns.
void start(Child& child) {
  child.tell();
  ASSERT_TRUE(child.await_word());
}

TEST(Probe, IsFoundInItsOwnProcess) { EXPECT_TRUE(reaches(::getpid(), own_probe())); }

TEST(Probe, IsNotFoundInAForkedChild) {
  Child child(run_until_told);
  start(child);
  EXPECT_FALSE(reaches(child.pid(), own_probe()));
  EXPECT_EQ(errno, ESRCH);
}

TEST(Probe, OfAForkedChildIsNotFoundInItsSibling) {
  // The addresses are equal: both are copies of this process.
  Probe of_one{};
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  Child one([&](Child& me) {
    const Probe mine = own_probe();
    if (::write(ends[1], &mine, sizeof mine) == sizeof mine) me.await_word();
  });
  Child other(run_until_told);
  start(other);
  one.tell();
  ASSERT_EQ(::read(ends[0], &of_one, sizeof of_one), static_cast<ssize_t>(sizeof of_one));
  EXPECT_TRUE(reaches(one.pid(), of_one));
  EXPECT_FALSE(reaches(other.pid(), of_one));
  for (const int end : ends) ::close(end);
}

}  // namespace
}  // namespace weft::shm
