// SPDX-License-Identifier: BSD-2-Clause
// Does a program go on when a forked child of it closes everything that it has inherited?
#include <sys/wait.h>
#include <unistd.h>

#include <optional>

#include "support/placements.h"

namespace weft::conformance {
namespace {

class ForkedChild : public testing::TestWithParam<Placement> {};

// The child is not the parent's peer's peer: closing its copies ends no flow and no connection.
TEST_P(ForkedChild, ClosesWhatItHasInheritedAndItsParentGoesOn) {
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
  GTEST_SKIP() << "gcc 12's sanitizers do not bring their own locks through a fork with threads";
#endif
  std::optional<World> world(std::in_place, GetParam(), Options());
  ASSERT_TRUE(world->ok());
  world->exchange(20000);
  for (int round = 0; round < 3; ++round) {
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      alarm(60);
      world.reset();
      _exit(0);
    }
    int status = -1;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << "status " << status;
    world->exchange(16);
    world->exchange(300000);
  }
}

INSTANTIATE_TEST_SUITE_P(Operations, ForkedChild,
                         testing::Values(Placement::kOneProcess, Placement::kTwoDomains,
                                         Placement::kConnected),
                         placement_name);

}  // namespace
}  // namespace weft::conformance
