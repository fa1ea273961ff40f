// SPDX-License-Identifier: BSD-2-Clause
// Is a shared engine driven from its first use to its last?
#include "device/engine_uses.h"

#include <gtest/gtest.h>

#include <cerrno>

namespace weft::device {
namespace {

struct EngineUsesTest : testing::Test {
  EngineUses uses;
  int driver = 0;
  int other = 0;
  int joined = 0;
  int left = 0;

  bool add(const void* to) {
    return uses
        .add(to,
             [&] {
               ++joined;
               return Status();
             })
        .ok();
  }
  void remove(const void* from) {
    uses.remove(from, [&] { ++left; });
  }
};

TEST_F(EngineUsesTest, ItJoinsWithTheFirstUseAndLeavesWithTheLast) {
  EXPECT_TRUE(add(&driver));
  EXPECT_TRUE(add(&driver));
  EXPECT_EQ(joined, 1);
  remove(&driver);
  EXPECT_EQ(left, 0);
  remove(&driver);
  EXPECT_EQ(left, 1);
  EXPECT_TRUE(add(&driver));
  EXPECT_EQ(joined, 2);
}

TEST_F(EngineUsesTest, EachDriverHasItsOwnCount) {
  EXPECT_TRUE(add(&driver));
  EXPECT_TRUE(add(&other));
  EXPECT_EQ(joined, 2);
  remove(&driver);
  EXPECT_EQ(left, 1);
}

TEST_F(EngineUsesTest, AnEndWithoutAUseIsNone) {
  remove(&driver);
  EXPECT_EQ(left, 0);
}

TEST_F(EngineUsesTest, AFailedJoinIsNoUse) {
  const Status refused = uses.add(&driver, [] { return Status(Error{EMFILE, "no descriptor"}); });
  EXPECT_FALSE(refused.ok());
  remove(&driver);
  EXPECT_EQ(left, 0);
  EXPECT_TRUE(add(&driver));
  EXPECT_EQ(joined, 1);
}

}  // namespace
}  // namespace weft::device
