// SPDX-License-Identifier: BSD-2-Clause
// Is a process told from another one that has its id?
#include "link_shm/peer_process.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <thread>

#include "test_support.h"

namespace weft::shm {
namespace {

using std::chrono::milliseconds;
using testing::Child;
using testing::RuntimeDir;

constexpr std::uint64_t kLock = 3;

// A child that holds a lock until it is told to give it up.
struct PeerProcessTest : ::testing::Test {
  RuntimeDir dir;
  Child child{[this](Child& self) {
    const auto locks = os::SharedFile::create(dir.path() + "/locks", 4096).value();
    if (!locks->publish().ok() || !locks->claim(kLock)) return;
    self.tell();
    self.await_word();
    locks->disclaim(kLock);
    self.tell();
    ::pause();
  }};
  std::unique_ptr<PeerProcess> peer;

  void SetUp() override {
    child.tell();
    ASSERT_TRUE(child.await_word());
    auto file = os::SharedFile::open(dir.path() + "/locks");
    ASSERT_TRUE(file.ok());
    peer = std::make_unique<PeerProcess>(file.value(), kLock, child.pid());
  }
  bool confirms_a_read() const {
    peer->was_read();
    return peer->reads_confirmed();
  }
  void disclaim() {
    child.tell();
    ASSERT_TRUE(child.await_word());
  }
  static void let_the_answer_age() { std::this_thread::sleep_for(milliseconds(30)); }
};

TEST_F(PeerProcessTest, IsConfirmedWhileItHoldsItsLock) {
  EXPECT_TRUE(peer->confirmed());
  EXPECT_TRUE(confirms_a_read());
  EXPECT_TRUE(peer->holds_lock());
}

TEST_F(PeerProcessTest, AProcessWithItsIdAndWithoutItsLockIsAnotherOne) {
  EXPECT_TRUE(peer->confirmed());
  disclaim();
  EXPECT_FALSE(peer->holds_lock());
  let_the_answer_age();
  EXPECT_FALSE(peer->confirmed());
  EXPECT_FALSE(confirms_a_read());
}

TEST_F(PeerProcessTest, AReadDuringWhichItEndedIsNotConfirmed) {
  EXPECT_TRUE(confirms_a_read());
  EXPECT_TRUE(peer->confirmed());
  child.kill_it();
  EXPECT_FALSE(confirms_a_read()) << "however recently it was confirmed";
}

TEST_F(PeerProcessTest, AFirstReadDuringWhichItEndedIsNotConfirmed) {
  EXPECT_TRUE(peer->confirmed());
  child.kill_it();
  EXPECT_FALSE(confirms_a_read());
}

TEST_F(PeerProcessTest, AConfirmedPeerStaysConfirmedWhenItEnds) {
  EXPECT_TRUE(confirms_a_read());
  child.kill_it();
  EXPECT_TRUE(peer->reads_confirmed());
  EXPECT_FALSE(confirms_a_read());
  EXPECT_FALSE(peer->reads_confirmed()) << "what was read from another process stays so, too";
}

TEST_F(PeerProcessTest, WithoutADescriptorTheLockIsAsked) {
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  const rlimit none{0, before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &none), 0);
  const bool while_it_lives = confirms_a_read();
  ::setrlimit(RLIMIT_NOFILE, &before);
  EXPECT_TRUE(while_it_lives);
  child.kill_it();
  EXPECT_FALSE(confirms_a_read());
}

TEST_F(PeerProcessTest, NoProcessIsNeverConfirmed) {
  PeerProcess nothing(nullptr, 0, 0);
  nothing.was_read();
  EXPECT_FALSE(nothing.confirmed());
  EXPECT_FALSE(nothing.reads_confirmed());
}

TEST_F(PeerProcessTest, ThisProcessIsConfirmedByItsOwnLock) {
  const auto file = os::SharedFile::create(dir.path() + "/own", 4096).value();
  PeerProcess self(file, 0, ::getpid());
  self.was_read();
  EXPECT_TRUE(self.confirmed());
  EXPECT_TRUE(self.reads_confirmed());
}

}  // namespace
}  // namespace weft::shm
