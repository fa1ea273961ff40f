// SPDX-License-Identifier: BSD-2-Clause
// Does every group drive what it has to drive, in whatever order groups and engines come and go?
#include "device/engine_registry.h"

#include <gtest/gtest.h>

namespace weft::device {
namespace {

// Counts how often it is driven.
class Driven final : public Engine {
 public:
  int times() { return std::exchange(times_, 0); }
  void progress() override { ++times_; }
  bool fall_asleep() override { return true; }
  void wake_up() override {}
  int wake_fd() const override { return waker_.fd(); }

 private:
  int times_ = 0;
  os::Event waker_ = os::Event::create().value();
};

struct EngineRegistryTest : testing::Test {
  EngineGroup first{true, WaitKind::kDescriptor};
  EngineGroup second{true, WaitKind::kNone};
  Driven one;
  Driven two;
  EngineRegistry registry;

  void SetUp() override {
    ASSERT_TRUE(first.open().ok());
    ASSERT_TRUE(registry.join(first).ok());
    ASSERT_TRUE(registry.join(one).ok());
  }
};

TEST_F(EngineRegistryTest, AGroupDrivesNoEndpointUntilItIsWidened) {
  first.progress();
  EXPECT_EQ(one.times(), 0);
  ASSERT_TRUE(registry.widen(first).ok());
  first.progress();
  EXPECT_EQ(one.times(), 1);
}

TEST_F(EngineRegistryTest, AWideGroupDrivesEndpointsThatComeLater) {
  ASSERT_TRUE(registry.widen(first).ok());
  ASSERT_TRUE(registry.join(two).ok());
  first.progress();
  EXPECT_EQ(two.times(), 1);
  registry.leave(two);
  first.progress();
  EXPECT_EQ(two.times(), 0);
}

TEST_F(EngineRegistryTest, AGroupThatIsWidenedTwiceDrivesOnce) {
  ASSERT_TRUE(registry.widen(first).ok());
  ASSERT_TRUE(registry.widen(first).ok());
  first.progress();
  EXPECT_EQ(one.times(), 1);
}

TEST_F(EngineRegistryTest, WhenAllAreWidenedGroupsOfBeforeAndAfterDriveEverything) {
  Driven common;
  ASSERT_TRUE(registry.widen_all(common).ok());
  ASSERT_TRUE(registry.join(second).ok());
  ASSERT_TRUE(registry.join(two).ok());
  for (EngineGroup* group : {&first, &second}) {
    group->progress();
    EXPECT_EQ(common.times(), 1);
    EXPECT_EQ(one.times(), 1);
    EXPECT_EQ(two.times(), 1);
  }
}

TEST_F(EngineRegistryTest, AGroupThatLeftIsNotTouched) {
  {
    EngineGroup passing(true, WaitKind::kNone);
    ASSERT_TRUE(registry.join(passing).ok());
    ASSERT_TRUE(registry.widen(passing).ok());
    registry.leave(passing);
  }
  ASSERT_TRUE(registry.join(two).ok());
  Driven common;
  ASSERT_TRUE(registry.widen_all(common).ok());
  first.progress();
  EXPECT_EQ(two.times(), 1);
}

// A wait that cannot be had for the new engine; the descriptor is no descriptor.
TEST_F(EngineRegistryTest, AnEngineThatCouldNotJoinIsNotDriven) {
  class Broken final : public Engine {
   public:
    void progress() override { FAIL() << "driven"; }
    bool fall_asleep() override { return true; }
    void wake_up() override {}
    int wake_fd() const override { return -1; }
  } broken;
  EXPECT_FALSE(registry.widen_all(broken).ok());
  ASSERT_TRUE(registry.widen(first).ok());
  EXPECT_FALSE(registry.join(broken).ok());
  first.progress();
  EXPECT_EQ(one.times(), 1);
  ASSERT_TRUE(registry.join(second).ok());
  second.progress();
}

}  // namespace
}  // namespace weft::device
