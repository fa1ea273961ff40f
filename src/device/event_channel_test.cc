// SPDX-License-Identifier: BSD-2-Clause
// Is a channel's descriptor readable exactly while an event waits, and is each taken once?
#include "device/event_channel.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

namespace weft::device {
namespace {

using std::chrono::milliseconds;

class EventChannelTest : public ::testing::Test {
 protected:
  void SetUp() override {
    auto opened = EventChannel::open();
    ASSERT_TRUE(opened.ok());
    channel_ = std::move(opened).value();
  }
  bool readable(milliseconds timeout = milliseconds(0)) const {
    return os::wait_readable(channel_->fd(), timeout);
  }
  // The object of the next event; null without one.
  void* next() {
    const auto channel_event = channel_->take();
    return channel_event ? channel_event->object : nullptr;
  }

  std::unique_ptr<EventChannel> channel_;
  int objects_[3] = {};
};

TEST_F(EventChannelTest, ItIsReadableWhileAnEventWaits) {
  EventSource source(Cause::kCompletion);
  EXPECT_FALSE(readable());
  EXPECT_FALSE(channel_->take());
  channel_->raise(source, &objects_[0]);
  EXPECT_TRUE(readable());
  const auto channel_event = channel_->take();
  ASSERT_TRUE(channel_event);
  EXPECT_EQ(channel_event->cause, Cause::kCompletion);
  EXPECT_EQ(channel_event->object, &objects_[0]);
  EXPECT_FALSE(readable());
  EXPECT_FALSE(channel_->take());
}

TEST_F(EventChannelTest, EventsAreTakenInTheirOrder) {
  EventSource sources[] = {EventSource(Cause::kCompletion), EventSource(Cause::kOverrun),
                           EventSource(Cause::kCompletion)};
  for (const int i : {1, 0, 2}) channel_->raise(sources[i], &objects_[i]);
  for (const int i : {1, 0, 2}) {
    EXPECT_TRUE(readable());
    EXPECT_EQ(next(), &objects_[i]);
  }
  EXPECT_FALSE(readable());
}

TEST_F(EventChannelTest, AnEventThatIsRaisedAgainIsTakenAsOften) {
  EventSource source(Cause::kCompletion);
  for (int i = 0; i < 3; ++i) channel_->raise(source, &objects_[0]);
  for (int i = 0; i < 3; ++i) {
    EXPECT_TRUE(readable());
    EXPECT_EQ(next(), &objects_[0]);
  }
  EXPECT_FALSE(readable());
}

TEST_F(EventChannelTest, ForgettingDropsWhatWaitsOfThatSourceOnly) {
  EventSource sources[] = {EventSource(Cause::kCompletion), EventSource(Cause::kCompletion)};
  for (int i = 0; i < 2; ++i) {
    channel_->raise(sources[0], &objects_[0]);
    channel_->raise(sources[1], &objects_[1]);
  }
  channel_->forget(sources[0]);
  EXPECT_TRUE(readable());
  EXPECT_EQ(next(), &objects_[1]);
  channel_->forget(sources[1]);
  EXPECT_FALSE(readable());
  EXPECT_FALSE(channel_->take());
  channel_->forget(sources[1]);
  channel_->raise(sources[0], &objects_[0]);
  EXPECT_EQ(next(), &objects_[0]) << "it may raise again";
}

TEST_F(EventChannelTest, OnceReadableTheOnlyReaderFindsAnEvent) {
  constexpr int kEach = 20000;
  EventSource sources[] = {EventSource(Cause::kCompletion), EventSource(Cause::kCompletion),
                           EventSource(Cause::kCompletion)};
  std::vector<std::thread> threads;
  for (int i = 0; i < 3; ++i) {
    threads.emplace_back([this, &source = sources[i], object = &objects_[i]] {
      for (int n = 0; n < kEach; ++n) {
        channel_->raise(source, object);
        if (n % 16 == 0) std::this_thread::yield();
      }
    });
  }
  int taken[3] = {};
  for (int total = 0; total < 3 * kEach; ++total) {
    ASSERT_TRUE(readable(milliseconds(60000))) << total << " events were taken, more wait";
    const auto channel_event = channel_->take();
    ASSERT_TRUE(channel_event) << "it was readable";
    ++taken[static_cast<int*>(channel_event->object) - objects_];
  }
  for (std::thread& thread : threads) thread.join();
  for (const int count : taken) EXPECT_EQ(count, kEach);
  EXPECT_FALSE(readable());
}

TEST_F(EventChannelTest, FourThreadsThatRaiseTakeAndForgetLeaveItUnreadableWhenItIsEmpty) {
  constexpr int kEach = 20000;
  EventSource sources[] = {EventSource(Cause::kCompletion), EventSource(Cause::kCompletion)};
  std::atomic<int> raising{2};
  std::atomic<int> taken{0};
  const auto raise = [&](int i, bool forgets) {
    for (int n = 0; n < kEach; ++n) {
      channel_->raise(sources[i], &objects_[i]);
      if (forgets && n % 3 == 0) channel_->forget(sources[i]);
    }
    if (forgets) channel_->forget(sources[i]);
    --raising;
  };
  const auto take = [&] {
    while (raising != 0 || readable()) {
      if (next() == &objects_[0]) ++taken;
    }
  };
  std::thread threads[] = {std::thread(raise, 0, false), std::thread(raise, 1, true),
                           std::thread(take), std::thread(take)};
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(taken, kEach) << "only the other source was forgotten";
  EXPECT_FALSE(readable());
  EXPECT_FALSE(channel_->take());
}

}  // namespace
}  // namespace weft::device
