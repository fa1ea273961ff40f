// SPDX-License-Identifier: BSD-2-Clause
// Which file does a descriptor of the program stand for?
#include "os/file_identity.h"

#include <fcntl.h>
#include <gtest/gtest.h>

#include <cerrno>

#include "os/fd.h"

namespace weft::os {
namespace {

TEST(FileIdentity, IsEqualForEveryDescriptorOfAFileAndForNoOther) {
  const Fd first(::open("/", O_RDONLY | O_CLOEXEC));
  const Fd again(::open("/", O_RDONLY | O_CLOEXEC));
  const Fd other(::open("/proc", O_RDONLY | O_CLOEXEC));
  EXPECT_EQ(identify_file(first.get()).value(), identify_file(again.get()).value());
  EXPECT_NE(identify_file(first.get()).value(), identify_file(other.get()).value());
  EXPECT_EQ(identify_file(-1).error().code, EBADF);
}

TEST(OpenFlags, AskForWhatTheyName) {
  EXPECT_TRUE(asks_to_create(O_CREAT | O_RDWR));
  EXPECT_FALSE(asks_to_create(O_EXCL));
  EXPECT_TRUE(asks_for_new(O_CREAT | O_EXCL));
  EXPECT_FALSE(asks_for_new(O_CREAT));
}

}  // namespace
}  // namespace weft::os
