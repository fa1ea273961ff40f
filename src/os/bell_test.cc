// SPDX-License-Identifier: BSD-2-Clause
// Does ringing wake exactly the bell that was named, whatever the name says?
#include "os/bell.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <random>

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
