// SPDX-License-Identifier: BSD-2-Clause
// Does ringing wake exactly the bell that was named, whatever the name says?
#include "os/waker.h"

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

#include "os/traced_process_support.h"

namespace weft::os {
namespace {

Waker make() {
  auto waker = Waker::create();
  EXPECT_TRUE(waker.ok()) << waker.error().message;
  return std::move(waker).value();
}

bool readable(int fd) {
  pollfd entry{fd, POLLIN, 0};
  return ::poll(&entry, 1, 0) == 1;
}

TEST(Waker, IsReadableFromARingUntilItIsSilenced) {
  Waker waker = make();
  const Waker other = make();
  EXPECT_FALSE(readable(waker.fd()));
  other.ring(waker.name());
  EXPECT_TRUE(readable(waker.fd()));
  EXPECT_TRUE(readable(waker.fd()));
  waker.silence();
  EXPECT_FALSE(readable(waker.fd()));
}

TEST(Waker, OnlyTheNamedOneIsRung) {
  const Waker ringer = make();
  const Waker named = make();
  const Waker other = make();
  EXPECT_NE(named.name(), other.name());
  ringer.ring(named.name());
  EXPECT_TRUE(readable(named.fd()));
  EXPECT_FALSE(readable(other.fd()));
  EXPECT_FALSE(readable(ringer.fd()));
}

TEST(Waker, MayRingItself) {
  const Waker waker = make();
  waker.ring(waker.name());
  EXPECT_TRUE(readable(waker.fd()));
}

TEST(Waker, IsHeardFromAnotherProcess) {
  const Waker waker = make();
  const pid_t child = ::fork();
  if (child == 0) {
    make().ring(waker.name());
    ::_exit(0);
  }
  ::waitpid(child, nullptr, 0);
  EXPECT_TRUE(readable(waker.fd()));
}

TEST(Waker, ManyRingsNeitherBlockNorOutliveOneSilence) {
  Waker waker = make();
  const Waker other = make();
  for (int i = 0; i < 5000; ++i) other.ring(waker.name());
  waker.silence();
  EXPECT_FALSE(readable(waker.fd()));
  other.ring(waker.name());
  EXPECT_TRUE(readable(waker.fd()));
}

// Another user can find the address (/proc/net/unix), but not the token.
TEST(Waker, DatagramsToItsAddressWithoutItsTokenAreNotHeard) {
  Waker waker = make();
  sockaddr_un address{};
  socklen_t length = sizeof address;
  ASSERT_EQ(::getsockname(waker.fd(), reinterpret_cast<sockaddr*>(&address), &length), 0);
  const Fd stranger(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  const std::array<char, 300> guess{};
  for (std::size_t bytes = 0; bytes <= guess.size(); ++bytes) {
    const ssize_t sent = ::sendto(stranger.get(), guess.data(), bytes, 0,
                                  reinterpret_cast<const sockaddr*>(&address), length);
    EXPECT_EQ(sent, static_cast<ssize_t>(bytes)) << "its queue is full";
  }
  EXPECT_FALSE(readable(waker.fd()));
  make().ring(waker.name());
  EXPECT_TRUE(readable(waker.fd()));
}

// Each time that the owner looks for a ring there is one more.
TEST(Waker, RingsWithoutEndDoNotHoldItsOwner) {
  Waker waker = make();
  std::array<int, 2> start{};
  std::array<int, 2> end{};
  ASSERT_EQ(::pipe(start.data()) | ::pipe(end.data()), 0);
  const pid_t child = ::fork();
  char byte = 0;
  if (child == 0) {
    if (::read(start[0], &byte, 1) == 1) waker.silence();
    ::_exit(::write(end[1], &byte, 1) == 1 ? 0 : 1);
  }
  const Waker other = make();
  int looks = 0;
  constexpr int kTooMany = 2000;
  {
    const TracedProcess traced(child, [&](long call) {
      if (call == SYS_recvfrom && ++looks < kTooMany) other.ring(waker.name());
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

TEST(Waker, RingingOneThatIsGoneDoesNothing) {
  const Waker ringer = make();
  WakerName name;
  {
    const Waker gone = make();
    name = gone.name();
  }
  ringer.ring(name);
  EXPECT_FALSE(readable(ringer.fd()));
}

TEST(Waker, InvalidNamesWakeNoProcess) {
  const Waker waker = make();
  std::mt19937 random(1);
  for (int i = 0; i < 5000; ++i) {
    WakerName name{};
    for (char& c : name) c = static_cast<char>(random() | 0x80);  // no name that the kernel gives
    waker.ring({name.data(), random() % (name.size() + 1)});
  }
  waker.ring(WakerName{});
  waker.ring({});
  const std::string longer(300, 'x');
  waker.ring(longer);
  EXPECT_FALSE(readable(waker.fd()));
}

TEST(Waker, ANameNeverLeadsToASocketInTheFileSystem) {
  std::string directory = "/tmp/wXXXXXX";
  ASSERT_NE(::mkdtemp(directory.data()), nullptr);
  const std::string path = directory + "/s";
  const Fd socket(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
  ASSERT_EQ(::bind(socket.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  WakerName name{};
  ASSERT_LT(path.size(), name.size());
  path.copy(name.data(), path.size());
  make().ring(name);
  EXPECT_FALSE(readable(socket.get()));
  ::unlink(path.c_str());
  ::rmdir(directory.c_str());
}

}  // namespace
}  // namespace weft::os
