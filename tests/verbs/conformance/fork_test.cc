// SPDX-License-Identifier: BSD-2-Clause
// Whose are verbs objects after fork(2)? (ibv_fork_init(3))
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <functional>

#include "support/end.h"

namespace weft::verbs_conformance {
namespace {

#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
constexpr bool kForks = false;  // gcc 12's do not bring their own locks through a fork with threads
#else
constexpr bool kForks = true;
#endif

class Forked : public testing::Test {
 protected:
  void SetUp() override {
    if (!kForks) GTEST_SKIP() << "not under a sanitizer";
  }
  // Runs in a child, which ends well if that is true.
  static void in_child(const std::function<bool()>& body) {
    const pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      ::alarm(60);
      ::_exit(body() ? 0 : 1);
    }
    int status = -1;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << "status " << status;
  }
  static bool exchanges(Pair& two) {
    if (two.b.receive(64, 1) != 0 || two.a.send(64, 2) != 0) return false;
    return two.a.sent().status == IBV_WC_SUCCESS && two.b.received().status == IBV_WC_SUCCESS;
  }
};

TEST_F(Forked, ChildOpensContextsOfItsOwn) {
  Pair two;
  EXPECT_TRUE(exchanges(two));
  in_child([] {
    Pair own;
    for (int i = 0; i < 10; ++i) {
      if (!exchanges(own)) return false;
    }
    return true;
  });
  EXPECT_TRUE(exchanges(two));
}

TEST_F(Forked, ChildClosesWhatItHasInherited) {
  std::optional<Pair> two(std::in_place);
  EXPECT_TRUE(exchanges(*two));
  for (int round = 0; round < 3; ++round) {
    in_child([&] {
      two.reset();
      return !testing::Test::HasFailure();
    });
    EXPECT_TRUE(exchanges(*two));
  }
}

// Work of the child would be sent as the parent's.
TEST_F(Forked, ChildPostsNothingToWhatItHasInherited) {
  Pair two;
  EXPECT_TRUE(exchanges(two));
  ASSERT_EQ(two.b.receive(64, 7), 0);
  in_child([&] {
    if (two.a.send(64) == 0) return false;
    ibv_wc wc{};
    for (int i = 0; i < 100; ++i) {
      if (ibv_poll_cq(two.a.sends(), 1, &wc) != 0) return false;
    }
    return two.a.to_error() != 0;
  });
  EXPECT_TRUE(two.b.is_quiet());
  EXPECT_EQ(two.a.state(), IBV_QPS_RTS);
  ASSERT_EQ(two.a.send(64), 0);
  EXPECT_EQ(two.a.sent().status, IBV_WC_SUCCESS);
  EXPECT_EQ(two.b.received().wr_id, 7u);
}

TEST_F(Forked, NeedsNoPreparation) {
  EXPECT_EQ(ibv_fork_init(), 0);
  EXPECT_EQ(ibv_is_fork_initialized(), IBV_FORK_UNNEEDED);
}

// The parent's memory is the parent's: a page that was written in the child is another one.
TEST_F(Forked, ParentsRegionsAreTheParentsMemory) {
  Pair two;
  in_child([&] {
    two.b.memory()[0] = std::byte{1};
    return true;
  });
  two.a.memory()[0] = std::byte{0x66};
  ASSERT_EQ(two.a.write(two.b.place(0), 1), 0);
  EXPECT_EQ(two.a.sent().status, IBV_WC_SUCCESS);
  EXPECT_EQ(two.b.memory()[0], std::byte{0x66});
}

// Two processes that talk to each other: the parent's end and an end of the child.
TEST_F(Forked, ChildTalksToItsParent) {
  int to_child[2];
  int to_parent[2];
  ASSERT_EQ(::pipe(to_child), 0);
  ASSERT_EQ(::pipe(to_parent), 0);
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    ::alarm(60);
    End b;
    const std::uint32_t own = b.qp()->qp_num;
    std::uint32_t peer = 0;
    bool good = ::write(to_parent[1], &own, sizeof own) == sizeof own;
    good = ::read(to_child[0], &peer, sizeof peer) == sizeof peer && good;
    b.connect(peer);
    good = b.receive(64) == 0 && good;
    good = ::write(to_parent[1], &own, sizeof own) == sizeof own && good;
    good = b.received().byte_len == 64 && good;
    ::_exit(good && !testing::Test::HasFailure() ? 0 : 1);
  }
  {
    End a;
    std::uint32_t peer = 0;
    const std::uint32_t own = a.qp()->qp_num;
    ASSERT_EQ(::read(to_parent[0], &peer, sizeof peer), static_cast<ssize_t>(sizeof peer));
    ASSERT_EQ(::write(to_child[1], &own, sizeof own), static_cast<ssize_t>(sizeof own));
    a.connect(peer);
    ASSERT_EQ(::read(to_parent[0], &peer, sizeof peer), static_cast<ssize_t>(sizeof peer));
    ASSERT_EQ(a.send(64), 0);
    EXPECT_EQ(a.sent().status, IBV_WC_SUCCESS);
  }
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << "status " << status;
  for (const int fd : {to_child[0], to_child[1], to_parent[0], to_parent[1]}) ::close(fd);
}

}  // namespace
}  // namespace weft::verbs_conformance
