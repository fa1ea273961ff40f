// SPDX-License-Identifier: BSD-2-Clause
// Does ringing wake exactly the bell that was named, whatever the name says?
#include "os/bell.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <random>

#include "os/traced_process.h"

namespace weft::os {
namespace {

Bell make() {
  auto bell = Bell::create();
  EXPECT_TRUE(bell.ok()) << bell.error().message;
  return std::move(bell).value();
}

bool readable(int fd) {
  pollfd entry{fd, POLLIN, 0};
  return ::poll(&entry, 1, 0) == 1;
}

TEST(Bell, IsReadableFromARingUntilItIsSilenced) {
  Bell bell = make();
  const Bell other = make();
  EXPECT_FALSE(readable(bell.fd()));
  other.ring(bell.name());
  EXPECT_TRUE(readable(bell.fd()));
  EXPECT_TRUE(readable(bell.fd()));
  bell.silence();
  EXPECT_FALSE(readable(bell.fd()));
}

TEST(Bell, OnlyTheNamedOneIsRung) {
  const Bell ringer = make();
  const Bell named = make();
  const Bell other = make();
  EXPECT_NE(named.name(), other.name());
  ringer.ring(named.name());
  EXPECT_TRUE(readable(named.fd()));
  EXPECT_FALSE(readable(other.fd()));
  EXPECT_FALSE(readable(ringer.fd()));
}

TEST(Bell, MayRingItself) {
  const Bell bell = make();
  bell.ring(bell.name());
  EXPECT_TRUE(readable(bell.fd()));
}

TEST(Bell, IsHeardFromAnotherProcess) {
  const Bell bell = make();
  const pid_t child = ::fork();
  if (child == 0) {
    make().ring(bell.name());
    ::_exit(0);
  }
  ::waitpid(child, nullptr, 0);
  EXPECT_TRUE(readable(bell.fd()));
}

TEST(Bell, ManyRingsNeitherBlockNorOutliveOneSilence) {
  Bell bell = make();
  const Bell other = make();
  for (int i = 0; i < 5000; ++i) other.ring(bell.name());
  bell.silence();
  EXPECT_FALSE(readable(bell.fd()));
  other.ring(bell.name());
  EXPECT_TRUE(readable(bell.fd()));
}

// Another user can find the address (/proc/net/unix), but not the token.
TEST(Bell, WhatIsSentToItsAddressWithoutItsTokenIsNotHeard) {
  Bell bell = make();
  sockaddr_un address{};
  socklen_t length = sizeof address;
  ASSERT_EQ(::getsockname(bell.fd(), reinterpret_cast<sockaddr*>(&address), &length), 0);
  const Fd stranger(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  const std::array<char, 300> guess{};
  for (std::size_t bytes = 0; bytes <= guess.size(); ++bytes) {
    const ssize_t sent = ::sendto(stranger.get(), guess.data(), bytes, 0,
                                  reinterpret_cast<const sockaddr*>(&address), length);
    EXPECT_EQ(sent, static_cast<ssize_t>(bytes)) << "its queue is full";
  }
  EXPECT_FALSE(readable(bell.fd()));
  make().ring(bell.name());
  EXPECT_TRUE(readable(bell.fd()));
}

// Each time that the owner looks for a ring there is one more.
TEST(Bell, RingsWithoutEndDoNotHoldItsOwner) {
  Bell bell = make();
  std::array<int, 2> start{};
  std::array<int, 2> end{};
  ASSERT_EQ(::pipe(start.data()) | ::pipe(end.data()), 0);
  const pid_t child = ::fork();
  char byte = 0;
  if (child == 0) {
    if (::read(start[0], &byte, 1) == 1) bell.silence();
    ::_exit(::write(end[1], &byte, 1) == 1 ? 0 : 1);
  }
  const Bell other = make();
  int looks = 0;
  constexpr int kTooMany = 2000;
  {
    const TracedProcess traced(child, [&](long call) {
      if (call == SYS_recvfrom && ++looks < kTooMany) other.ring(bell.name());
    });
    if (!traced.ok()) {
      ::kill(child, SIGKILL);
      ::waitpid(child, nullptr, 0);
      GTEST_SKIP() << "processes may not be traced here";
    }
    EXPECT_EQ(::write(start[1], &byte, 1), 1);
    EXPECT_EQ(::read(end[0], &byte, 1), 1);
  }
  ::waitpid(child, nullptr, 0);
  EXPECT_GT(looks, 0);
  EXPECT_LT(looks, kTooMany);
  for (const int fd : {start[0], start[1], end[0], end[1]}) ::close(fd);
}

TEST(Bell, RingingOneThatIsGoneDoesNothing) {
  const Bell ringer = make();
  BellName name;
  {
    const Bell gone = make();
    name = gone.name();
  }
  ringer.ring(name);
  EXPECT_FALSE(readable(ringer.fd()));
}

TEST(Bell, NonsenseNamesRingNobody) {
  const Bell bell = make();
  std::mt19937 random(1);
  for (int i = 0; i < 5000; ++i) {
    BellName name{};
    for (char& c : name) c = static_cast<char>(random() | 0x80);  // no name that the kernel gives
    bell.ring({name.data(), random() % (name.size() + 1)});
  }
  bell.ring(BellName{});
  bell.ring({});
  const std::string longer(300, 'x');
  bell.ring(longer);
  EXPECT_FALSE(readable(bell.fd()));
}

TEST(Bell, ANameNeverLeadsToASocketInTheFileSystem) {
  std::string directory = "/tmp/wXXXXXX";
  ASSERT_NE(::mkdtemp(directory.data()), nullptr);
  const std::string path = directory + "/s";
  const Fd socket(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
  ASSERT_EQ(::bind(socket.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  BellName name{};
  ASSERT_LT(path.size(), name.size());
  path.copy(name.data(), path.size());
  make().ring(name);
  EXPECT_FALSE(readable(socket.get()));
  ::unlink(path.c_str());
  ::rmdir(directory.c_str());
}

}  // namespace
}  // namespace weft::os
