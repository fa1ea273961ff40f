// SPDX-License-Identifier: BSD-2-Clause
// Is a name found for as long as its owner lives, and in its network namespace only?
#include "os/local_name.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstddef>
#include <cstring>
#include <optional>

#include "os/own_process_support.h"

namespace weft::os {
namespace {

// Tests beside this one have other names.
std::string name_of_test(const char* what) {
  return "weft-test/" + std::to_string(::getpid()) + "/" + what;
}

TEST(LocalName, IsFoundUntilItIsClosed) {
  const std::string name = name_of_test("one");
  LocalNames names;
  EXPECT_FALSE(names.has(name));
  {
    const auto claimed = LocalName::claim(name);
    ASSERT_TRUE(claimed.ok()) << claimed.error().message;
    EXPECT_TRUE(names.has(name));
    EXPECT_TRUE(names.has(name)) << "any number of times";
    EXPECT_FALSE(names.has(name + "x"));
    EXPECT_FALSE(names.has(name.substr(0, name.size() - 1)));
  }
  EXPECT_FALSE(names.has(name));
}

TEST(LocalName, HasOneOwner) {
  const std::string name = name_of_test("two");
  const auto first = LocalName::claim(name);
  ASSERT_TRUE(first.ok());
  const auto second = LocalName::claim(name);
  ASSERT_FALSE(second.ok());
  EXPECT_EQ(second.error().code, EADDRINUSE);
}

TEST(LocalName, EndsWithItsProcess) {
  const std::string name = name_of_test("three");
  int ends[2] = {-1, -1};
  ASSERT_EQ(::pipe(ends), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    const auto claimed = LocalName::claim(name);
    ::close(ends[0]);
    ::close(ends[1]);
    for (;;) ::pause();
  }
  ::close(ends[1]);
  char byte = 0;
  EXPECT_EQ(::read(ends[0], &byte, 1), 0);  // the child has closed both ends
  LocalNames names;
  EXPECT_TRUE(names.has(name));
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  EXPECT_FALSE(names.has(name));
  ::close(ends[0]);
}

TEST(LocalName, IsNotSeenFromAnotherNetwork) {
  const std::string name = name_of_test("four");
  const auto claimed = LocalName::claim(name);
  ASSERT_TRUE(claimed.ok());
  in_own_process("a network namespace", [&] {
    if (!enter_empty_network()) return false;
    LocalNames names;
    EXPECT_FALSE(names.has(name));
    EXPECT_TRUE(LocalName::claim(name).ok());
    return true;
  });
}

TEST(LocalName, TakesNothingIn) {
  const std::string name = name_of_test("five");
  const auto claimed = LocalName::claim(name);
  ASSERT_TRUE(claimed.ok());
  const Fd sender(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  sockaddr_un to{};
  to.sun_family = AF_UNIX;
  std::memcpy(to.sun_path + 1, name.data(), name.size());
  const auto length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  EXPECT_EQ(::sendto(sender.get(), "x", 1, MSG_NOSIGNAL, reinterpret_cast<sockaddr*>(&to), length),
            -1);
  EXPECT_EQ(errno, EPIPE);
}

TEST(LocalName, EmptyAndOverlongNamesAreRefused) {
  LocalNames names;
  for (const std::string& name : {std::string(), std::string(LocalName::kLongest + 1, 'x')}) {
    const auto claimed = LocalName::claim(name);
    ASSERT_FALSE(claimed.ok());
    EXPECT_EQ(claimed.error().code, EINVAL);
    EXPECT_FALSE(names.has(name));
  }
}

}  // namespace
}  // namespace weft::os
