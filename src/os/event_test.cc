// SPDX-License-Identifier: BSD-2-Clause
// Do descriptors become readable when they should, alone and as members of a set?
#include "os/event.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <thread>

namespace weft::os {
namespace {

using std::chrono::milliseconds;

Event make_event() {
  auto event = Event::create();
  EXPECT_TRUE(event.ok()) << event.error().message;
  return std::move(event).value();
}

EventSet make_set() {
  auto set = EventSet::create();
  EXPECT_TRUE(set.ok()) << set.error().message;
  return std::move(set).value();
}

bool readable(int fd) { return wait_readable(fd, milliseconds(0)); }

TEST(Event, IsReadableFromSetUntilClear) {
  Event event = make_event();
  EXPECT_FALSE(readable(event.fd()));
  event.set();
  EXPECT_TRUE(readable(event.fd()));
  EXPECT_TRUE(readable(event.fd()));
  event.clear();
  EXPECT_FALSE(readable(event.fd()));
}

TEST(Event, OneClearTakesBackEverySet) {
  Event event = make_event();
  for (int i = 0; i < 3; ++i) event.set();
  event.clear();
  EXPECT_FALSE(readable(event.fd()));
}

TEST(Event, ClearingWhatIsNotSetDoesNotBlock) {
  Event event = make_event();
  event.clear();
  EXPECT_FALSE(readable(event.fd()));
}

TEST(EventSet, IsReadableWhileAMemberIs) {
  Event first = make_event();
  Event second = make_event();
  EventSet set = make_set();
  ASSERT_TRUE(set.add(first.fd()).ok());
  ASSERT_TRUE(set.add(second.fd()).ok());
  EXPECT_FALSE(readable(set.fd()));
  second.set();
  EXPECT_TRUE(readable(set.fd()));
  second.clear();
  EXPECT_FALSE(readable(set.fd()));
}

TEST(EventSet, AMemberThatLeftIsNotHeard) {
  Event event = make_event();
  EventSet set = make_set();
  ASSERT_TRUE(set.add(event.fd()).ok());
  set.remove(event.fd());
  event.set();
  EXPECT_FALSE(readable(set.fd()));
}

TEST(EventSet, AddingTwiceCountsOnce) {
  Event event = make_event();
  EventSet set = make_set();
  ASSERT_TRUE(set.add(event.fd()).ok());
  EXPECT_TRUE(set.add(event.fd()).ok());
  set.remove(event.fd());
  event.set();
  EXPECT_FALSE(readable(set.fd()));
}

TEST(EventSet, AnInvalidDescriptorCannotJoin) {
  EventSet set = make_set();
  const Status added = set.add(-1);
  ASSERT_FALSE(added.ok());
  EXPECT_EQ(added.error().code, EBADF);
}

TEST(WaitReadable, EndsWhenTheTimeIsOver) {
  const Event event = make_event();
  EXPECT_FALSE(wait_readable(event.fd(), milliseconds(1)));
}

TEST(WaitReadable, WithoutALimitItEndsWhenAnotherThreadSetsTheEvent) {
  Event event = make_event();
  std::thread other([&] { event.set(); });
  EXPECT_TRUE(wait_readable(event.fd(), milliseconds(-1)));
  other.join();
}

TEST(WaitReadable, ALimitBeyondWhatPollCanCountIsNoError) {
  Event event = make_event();
  event.set();
  EXPECT_TRUE(wait_readable(event.fd(), milliseconds::max()));
}

TEST(EventSet, AForkedChildDoesNotTakeMembersFromItsParent) {
  Event event = Event::create().value();
  EventSet set = EventSet::create().value();
  ASSERT_TRUE(set.add(event.fd()).ok());
  const pid_t child = ::fork();
  if (child == 0) {
    set.remove(event.fd());
    ::_exit(0);
  }
  ::waitpid(child, nullptr, 0);
  event.set();
  EXPECT_TRUE(readable(set.fd()));
}

TEST(PollList, TellsWhichOfItsDescriptorsAreReadable) {
  Event one = Event::create().value();
  Event two = Event::create().value();
  PollList list;
  list.add(one.fd());
  list.add(-1);
  list.add(two.fd());
  EXPECT_FALSE(list.wait(milliseconds(5)));
  EXPECT_FALSE(list.readable(0));
  two.set();
  EXPECT_TRUE(list.wait(milliseconds(20000)));
  EXPECT_FALSE(list.readable(0));
  EXPECT_FALSE(list.readable(1));
  EXPECT_TRUE(list.readable(2));
  EXPECT_FALSE(list.readable(3));
  list.clear();
  EXPECT_FALSE(list.wait(milliseconds(0)));
  EXPECT_FALSE(list.readable(2));
}

TEST(WatchProcess, BecomesReadableWhenTheProcessEnds) {
  if (!watch_process(::getpid()).valid()) GTEST_SKIP() << "no process descriptors here";
  const pid_t child = ::fork();
  if (child == 0) {
    ::pause();
    ::_exit(0);
  }
  const Fd watched = watch_process(child);
  EXPECT_FALSE(readable(watched.get()));
  ::kill(child, SIGKILL);
  EXPECT_TRUE(wait_readable(watched.get(), milliseconds(20000)));
  ::waitpid(child, nullptr, 0);
}

TEST(WatchProcess, AProcessThatIsGoneCannotBeWatched) {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(0);
  ::waitpid(child, nullptr, 0);
  EXPECT_FALSE(watch_process(child).valid());
}

}  // namespace
}  // namespace weft::os
