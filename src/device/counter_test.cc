// SPDX-License-Identifier: BSD-2-Clause
// Does a counter count every success and failure, and wake the threads that wait for it?
#include "device/counter.h"

#include <gtest/gtest.h>

#include <thread>

namespace weft::device {
namespace {

TEST(Counter, SuccessesAndFailuresAreCountedApart) {
  Counter counter(true, WaitKind::kNone);
  EXPECT_EQ(counter.value(), 0U);
  counter.add(3);
  counter.add_errors(2);
  counter.add(1);
  EXPECT_EQ(counter.value(), 4U);
  EXPECT_EQ(counter.errors(), 2U);
}

TEST(Counter, SettingReplacesTheValue) {
  Counter counter(true, WaitKind::kNone);
  counter.add(3);
  counter.set(100);
  counter.set_errors(50);
  EXPECT_EQ(counter.value(), 100U);
  EXPECT_EQ(counter.errors(), 50U);
}

TEST(Counter, ItWrapsAroundLikeAnyUnsignedNumber) {
  Counter counter(true, WaitKind::kNone);
  counter.set(~std::uint64_t{0});
  counter.add(2);
  EXPECT_EQ(counter.value(), 1U);
}

TEST(Counter, ThreadsThatAddAtOnceLoseNothing) {
  Counter counter(true, WaitKind::kNone);
  const auto work = [&] {
    for (int i = 0; i < 20000; ++i) counter.add(1);
  };
  std::thread other(work);
  work();
  other.join();
  EXPECT_EQ(counter.value(), 40000U);
}

TEST(Counter, EveryChangeWakesAThreadThatWaitsForIt) {
  using Change = void (*)(Counter&);
  for (const Change change :
       {Change([](Counter& c) { c.add(1); }), Change([](Counter& c) { c.add_errors(1); }),
        Change([](Counter& c) { c.set(1); }), Change([](Counter& c) { c.set_errors(1); })}) {
    Counter counter(true, WaitKind::kDescriptor);
    ASSERT_TRUE(counter.engines().open().ok());
    std::thread other([&] { change(counter); });
    EXPECT_TRUE(counter.engines().wait(std::chrono::milliseconds(-1),
                                       [&] { return counter.value() + counter.errors() == 1; }));
    other.join();
  }
}

TEST(Counter, EveryChangeMakesTheDescriptorReadable) {
  using Change = void (*)(Counter&);
  for (const Change change :
       {Change([](Counter& c) { c.add(1); }), Change([](Counter& c) { c.add_errors(1); }),
        Change([](Counter& c) { c.set(1); }), Change([](Counter& c) { c.set_errors(1); })}) {
    Counter counter(true, WaitKind::kDescriptor);
    ASSERT_TRUE(counter.engines().open().ok());
    ASSERT_TRUE(counter.engines().prepare_wait([] { return false; }));
    change(counter);
    EXPECT_TRUE(os::wait_readable(counter.engines().descriptor(), std::chrono::milliseconds(0)));
  }
}

}  // namespace
}  // namespace weft::device
