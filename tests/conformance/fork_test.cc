// SPDX-License-Identifier: BSD-2-Clause
// What may a forked child do with what it has inherited, and with libfabric?
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <functional>
#include <optional>
#include <thread>

#include "support/placements.h"

namespace weft::conformance {
namespace {

#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
constexpr bool kForks = false;
#else
constexpr bool kForks = true;
#endif
constexpr const char* kWhyNot =
    "gcc 12's sanitizers do not bring their own locks through a fork with threads";

// Runs `body` in a child, whose failed expectations are those of the test. It may hang.
void in_child(const std::function<void()>& body) {
  std::fflush(stdout);
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    alarm(30);
    body();
    std::fflush(stdout);
    _exit(testing::Test::HasFailure() ? 1 : 0);
  }
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << "status " << status;
}

class ForkedChild : public testing::TestWithParam<Placement> {};

// The child is not the parent's peer's peer: closing its copies ends no flow and no connection.
TEST_P(ForkedChild, ClosesWhatItHasInheritedAndItsParentGoesOn) {
  if (!kForks) GTEST_SKIP() << kWhyNot;
  std::optional<World> world(std::in_place, GetParam(), Options());
  ASSERT_TRUE(world->ok());
  world->exchange(20000);
  for (int round = 0; round < 3; ++round) {
    in_child([&] { world.reset(); });
    world->exchange(16);
    world->exchange(300000);
  }
}

INSTANTIATE_TEST_SUITE_P(Operations, ForkedChild,
                         testing::Values(Placement::kOneProcess, Placement::kTwoDomains,
                                         Placement::kConnected),
                         placement_name);

// Without another domain the device opens and closes with each one.
class ForkBeside : public testing::TestWithParam<bool> {};

TEST_P(ForkBeside, OneThatOpensDomainsTheChildOpensOneToo) {
  if (!kForks) GTEST_SKIP() << kWhyNot;
  int rc = 0;
  const Info info = get_info(Options{}, make_hints(Options{}).get(), &rc);
  ASSERT_EQ(rc, 0);
  const auto open_fabric = [&] {
    return open_fid<fid_fabric>(
        [&](fid_fabric** out) { return fi_fabric(info->fabric_attr, out, nullptr); });
  };
  const auto open_domain = [&](fid_fabric* fabric) {
    return open_fid<fid_domain>(
        [&](fid_domain** out) { return fi_domain(fabric, info.get(), out, nullptr); });
  };
  const auto fabric = open_fabric();
  std::atomic<bool> stop{false};
  std::thread other([&] {
    while (!stop) open_domain(fabric.get());
  });
  for (int round = 0; round < 16 && !HasFailure(); ++round) {
    in_child([&] {
      if (GetParam()) {
        const auto own = open_fabric();
        open_domain(own.get());
      } else {
        open_domain(fabric.get());
      }
    });
  }
  stop = true;
  other.join();
}

INSTANTIATE_TEST_SUITE_P(Operations, ForkBeside, testing::Bool(),
                         [](const testing::TestParamInfo<bool>& one) {
                           return one.param ? "OfItsOwnFabric" : "OfItsParentsFabric";
                         });

}  // namespace
}  // namespace weft::conformance
