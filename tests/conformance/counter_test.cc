// SPDX-License-Identifier: BSD-2-Clause
// What do completion counters count, and how can one wait for them? (fi_cntr(3))
#include <thread>

#include "os/thread_state_support.h"
#include "support/native_wait.h"
#include "support/placements.h"

namespace weft::conformance {
namespace {

constexpr std::uint64_t kLocal = FI_SEND | FI_RECV | FI_READ | FI_WRITE;

Options counting(std::uint64_t counters, std::uint64_t more_caps = 0) {
  Options options;
  options.counters = counters;
  options.caps |= more_caps;
  return options;
}

class Counter : public PlacementTest {
 protected:
  Counter() : world_(GetParam(), counting(kLocal)) {}

  void expect_counts(Party& party, std::uint64_t send, std::uint64_t recv, std::uint64_t read,
                     std::uint64_t write) {
    party.expect_counter(FI_SEND, send);
    party.expect_counter(FI_RECV, recv);
    party.expect_counter(FI_READ, read);
    party.expect_counter(FI_WRITE, write);
  }
  Token rma(Kind kind, const Region& region, std::size_t length = 16) {
    return world_.initiator().post({.kind = kind,
                                    .length = length,
                                    .seed = 1,
                                    .peer = world_.to_target(),
                                    .remote_address = region.base,
                                    .key = region.key});
  }

  World world_;
};

TEST_P(Counter, EveryMessageCountsAtBothSides) {
  ASSERT_TRUE(world_.ok());
  const Kind kinds[] = {Kind::kSend, Kind::kInject, Kind::kTsend, Kind::kTinject, Kind::kTsenddata};
  std::uint64_t sent = 0;
  for (const std::size_t length : {0u, 8u, 100u, 3000u}) {
    for (const Kind kind : kinds) {
      const std::size_t n = std::min(length, world_.endpoint().info()->tx_attr->inject_size);
      world_.target().post({.kind = traits(kind).tagged ? Kind::kTrecv : Kind::kRecv, .length = n});
      world_.initiator().post({.kind = kind, .length = n, .seed = 1, .peer = world_.to_target()});
      ++sent;
    }
  }
  world_.initiator().expect_counter(FI_SEND, sent);
  world_.target().expect_counter(FI_RECV, sent);
  world_.initiator().expect_counter(FI_WRITE, 0);
  world_.initiator().expect_counter(FI_READ, 0);
  EXPECT_EQ(world_.initiator().counter_error(FI_SEND), 0u);
}

TEST_P(Counter, EveryRemoteAccessCountsAtItsInitiator) {
  ASSERT_TRUE(world_.ok());
  const Region region = world_.target().expose({.length = 200000});
  for (const std::size_t length : {16u, 200000u}) {
    rma(Kind::kWrite, region, length);
    rma(Kind::kWritev, region, length);
    rma(Kind::kRead, region, length);
  }
  rma(Kind::kInjectWrite, region);
  expect_counts(world_.initiator(), 0, 0, 2, 5);
}

TEST_P(Counter, FailureCountsAsErrorOnly) {
  ASSERT_TRUE(world_.ok());
  Region region = world_.target().expose({});
  region.key += 77;
  const Token write = rma(Kind::kWrite, region);
  world_.initiator().wait_error(write, FI_EACCES);
  EXPECT_EQ(world_.initiator().counter_error(FI_WRITE), 1u);
  EXPECT_EQ(world_.initiator().counter(FI_WRITE), 0u);
  const Token cancelled = world_.initiator().post({.kind = Kind::kRecv, .length = 4});
  EXPECT_EQ(world_.initiator().cancel(cancelled), 0);
  world_.initiator().wait_error(cancelled, FI_ECANCELED);
  EXPECT_EQ(world_.initiator().counter_error(FI_RECV), 1u);
  EXPECT_EQ(world_.initiator().counter(FI_RECV), 0u);
}

INSTANTIATE_TEST_SUITE_P(Counters, Counter, both_process_counts(), placement_name);

class RmaEvent : public PlacementTest {};

TEST_P(RmaEvent, TargetCountsRemoteAccesses) {
  World world(GetParam(), counting(kLocal | FI_REMOTE_READ | FI_REMOTE_WRITE, FI_RMA_EVENT));
  ASSERT_TRUE(world.ok());
  const Region region = world.target().expose({.length = 100000});
  std::uint64_t writes = 0;
  const auto rma = [&](Kind kind, std::size_t length) {
    const Token token = world.initiator().post({.kind = kind,
                                                .length = length,
                                                .seed = length,
                                                .peer = world.to_target(),
                                                .remote_address = region.base,
                                                .key = region.key});
    if (!traits(kind).inject) world.initiator().wait_success(token);
  };
  for (const std::size_t length : {std::size_t{8}, std::size_t{100000}}) {
    for (const Kind kind : {Kind::kWrite, Kind::kWritev, Kind::kWritemsg, Kind::kInjectWrite}) {
      rma(kind, traits(kind).inject ? 8 : length);
      world.target().expect_counter(FI_REMOTE_WRITE, ++writes);
    }
  }
  EXPECT_EQ(world.target().counter(FI_REMOTE_READ), 0u);
  rma(Kind::kRead, 100000);
  rma(Kind::kReadv, 8);
  world.target().expect_counter(FI_REMOTE_READ, 2);
  EXPECT_EQ(world.target().counter(FI_REMOTE_WRITE), writes);
}

// The counter is what tells the target that the data is there.
TEST_P(RmaEvent, CountedDataIsVisible) {
  World world(GetParam(), counting(FI_REMOTE_WRITE, FI_RMA_EVENT));
  ASSERT_TRUE(world.ok());
  for (std::uint64_t round = 1; round <= 20; ++round) {
    const std::size_t length = round % 2 == 0 ? 64 : 150000;
    const Region region = world.target().expose({.length = length});
    const Token write = world.initiator().post({.kind = Kind::kWrite,
                                                .length = length,
                                                .seed = round,
                                                .peer = world.to_target(),
                                                .remote_address = region.base,
                                                .key = region.key});
    world.target().expect_counter(FI_REMOTE_WRITE, round);
    world.target().expect_region(region, round, 0, length);
    world.initiator().wait_success(write);
    EXPECT_EQ(world.target().close_region(region), 0);
  }
}

INSTANTIATE_TEST_SUITE_P(Counters, RmaEvent, every_placement(), placement_name);

class CounterWait : public testing::TestWithParam<fi_wait_obj> {
 protected:
  CounterWait() : world_(Placement::kTwoProcesses, options()) {}
  static Options options() {
    Options options = counting(kLocal);
    options.counter_wait = GetParam();
    return options;
  }
  fid_cntr* received() { return world_.endpoint().counter(FI_RECV); }
  static int patience_ms() { return static_cast<int>(patience().count()); }

  World world_;
};

TEST_P(CounterWait, ValueCanBeSetAndAddedTo) {
  ASSERT_TRUE(world_.ok());
  EXPECT_EQ(fi_cntr_read(received()), 0u);
  EXPECT_EQ(fi_cntr_set(received(), 10), 0);
  EXPECT_EQ(fi_cntr_add(received(), 5), 0);
  EXPECT_TRUE(world_.pump().until([&] { return fi_cntr_read(received()) == 15; }));
  EXPECT_EQ(fi_cntr_readerr(received()), 0u);
  EXPECT_EQ(fi_cntr_seterr(received(), 3), 0);
  EXPECT_EQ(fi_cntr_adderr(received(), 4), 0);
  EXPECT_TRUE(world_.pump().until([&] { return fi_cntr_readerr(received()) == 7; }));
  EXPECT_EQ(fi_cntr_read(received()), 15u);
}

TEST_P(CounterWait, ReachedThresholdReturnsAtOnce) {
  ASSERT_TRUE(world_.ok());
  EXPECT_EQ(fi_cntr_set(received(), 10), 0);
  EXPECT_EQ(fi_cntr_wait(received(), 10, 0), 0);
  EXPECT_EQ(fi_cntr_wait(received(), 3, -1), 0);
}

TEST_P(CounterWait, MissedThresholdTimesOut) {
  ASSERT_TRUE(world_.ok());
  EXPECT_EQ(fi_cntr_wait(received(), 1, 20), -FI_ETIMEDOUT);
  EXPECT_EQ(fi_cntr_readerr(received()), 0u);
}

TEST_P(CounterWait, SleeperIsWokenByAPeersMessage) {
  ASSERT_TRUE(world_.ok());
  world_.initiator().post({.kind = Kind::kRecv, .length = 8});
  Request request;
  request.what = Request::What::kPost;
  request.operation = {.kind = Kind::kSend,
                       .length = 8,
                       .seed = 5,
                       .peer = world_.to_initiator(),
                       .delay_us = 50000};
  world_.remote().start(request);
  EXPECT_EQ(fi_cntr_wait(received(), 1, patience_ms()), 0);
  world_.target().wait_success(world_.remote().finish().value);
}

TEST_P(CounterWait, SleeperIsWokenByAdding) {
  ASSERT_TRUE(world_.ok());
  std::thread adder = os::once_asleep([&] { EXPECT_EQ(fi_cntr_add(received(), 2), 0); });
  EXPECT_EQ(fi_cntr_wait(received(), 2, patience_ms()), 0);
  adder.join();
}

TEST_P(CounterWait, SleeperIsWokenByAnError) {
  ASSERT_TRUE(world_.ok());
  std::thread adder = os::once_asleep([&] { EXPECT_EQ(fi_cntr_adderr(received(), 1), 0); });
  EXPECT_EQ(fi_cntr_wait(received(), 2, patience_ms()), -FI_EAVAIL);
  adder.join();
}

// Within a host the operation fails inside the call that posts it; over the network its error is
// read here first. Either way it was counted before the wait.
TEST_P(CounterWait, AnErrorFromBeforeEndsItUnlessTheProgramWasTold) {
  ASSERT_TRUE(world_.ok());
  fid_cntr* const written = world_.endpoint().counter(FI_WRITE);
  const auto fail = [&] {
    const Token write =
        world_.initiator().post({.kind = Kind::kWrite, .length = 8, .peer = world_.to_target()});
    world_.initiator().wait_error(write, FI_EACCES);
  };
  fail();
  EXPECT_EQ(fi_cntr_wait(written, 1, patience_ms()), -FI_EAVAIL);
  EXPECT_EQ(fi_cntr_wait(written, 1, 10), -FI_ETIMEDOUT) << "the wait before has told of it";
  fail();
  EXPECT_EQ(fi_cntr_readerr(written), 2u);
  EXPECT_EQ(fi_cntr_wait(written, 1, 10), -FI_ETIMEDOUT) << "it was read";
  EXPECT_EQ(fi_cntr_adderr(written, 1), 0);
  EXPECT_EQ(fi_cntr_wait(written, 1, 10), -FI_ETIMEDOUT) << "the program has added it";
  EXPECT_EQ(fi_cntr_seterr(written, 0), 0);
  EXPECT_EQ(fi_cntr_wait(written, 1, 10), -FI_ETIMEDOUT) << "the program has set it";
  fail();
  EXPECT_EQ(fi_cntr_set(written, 1), 0);
  EXPECT_EQ(fi_cntr_wait(written, 1, patience_ms()), 0) << "the threshold comes first";
  EXPECT_EQ(fi_cntr_wait(written, 2, patience_ms()), -FI_EAVAIL);
}

TEST_P(CounterWait, KindOfTheWaitObjectCanBeAskedFor) {
  ASSERT_TRUE(world_.ok());
  fi_wait_obj object = FI_WAIT_NONE;
  EXPECT_EQ(fi_control(&received()->fid, FI_GETWAITOBJ, &object), 0);
  EXPECT_EQ(object, GetParam());
}

std::string object_name(const testing::TestParamInfo<fi_wait_obj>& one) {
  return to_string(one.param);
}

INSTANTIATE_TEST_SUITE_P(Counters, CounterWait,
                         testing::Values(FI_WAIT_UNSPEC, FI_WAIT_FD, FI_WAIT_POLLFD,
                                         FI_WAIT_MUTEX_COND, FI_WAIT_YIELD),
                         object_name);

class CounterWaitNative : public CounterWait {};

TEST_P(CounterWaitNative, BlockingEndsWhenAValueChanges) {
  ASSERT_TRUE(world_.ok());
  for (std::uint64_t round = 1; round <= 20 && !HasFailure(); ++round) {
    std::thread adder([&] {
      std::this_thread::sleep_for(std::chrono::microseconds(round * 50));
      EXPECT_EQ(round % 2 == 0 ? fi_cntr_add(received(), 1) : fi_cntr_adderr(received(), 1), 0);
    });
    while (fi_cntr_read(received()) + fi_cntr_readerr(received()) < round) {
      const int blocked = block_on(world_.endpoint().domain()->fabric(), &received()->fid,
                                   GetParam(), patience_ms());
      ASSERT_TRUE(blocked == 0 || blocked == -FI_EAGAIN) << blocked;
    }
    adder.join();
  }
}

INSTANTIATE_TEST_SUITE_P(Counters, CounterWaitNative, testing::ValuesIn(kNativeObjects),
                         object_name);

// The manual forbids it, and programs do it all the same.
TEST(CounterWaitNone, WaitingSpins) {
  Options options = counting(FI_RECV);
  options.counter_wait = FI_WAIT_NONE;
  World world(Placement::kSelf, options);
  ASSERT_TRUE(world.ok());
  fid_cntr* const received = world.endpoint().counter(FI_RECV);
  EXPECT_EQ(fi_cntr_wait(received, 1, 10), -FI_ETIMEDOUT);
  world.initiator().post({.kind = Kind::kRecv, .length = 8});
  world.initiator().post({.kind = Kind::kInject, .length = 8, .peer = world.to_target()});
  EXPECT_EQ(fi_cntr_wait(received, 1, static_cast<int>(patience().count())), 0);
}

}  // namespace
}  // namespace weft::conformance
