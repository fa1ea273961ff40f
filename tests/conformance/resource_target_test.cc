// SPDX-License-Identifier: BSD-2-Clause
// What does a peer without room, buffers or memory for an operation do to its sender?
// (fi_domain(3), resource management: Target EP, No Rx Buffer, Rx Buf Overrun, Unmatched RMA, RMA
// Overrun)
#include "support/delivery.h"
#include "support/resource_test.h"
#include "support/world.h"

namespace weft::conformance {
namespace {

// --- The peer's endpoint -----------------------------------------------------------------------

// The peer is another process, which makes no call until the sender is held back.
class TargetEndpoint : public ResourceTest {};

TEST_P(TargetEndpoint, IsFullWhileItsProgramDoesNothingAndNoMessageIsLost) {
  const Kind kind = GetParam().kind;
  const Options options = roomy();
  World world(
      GetParam().type == FI_EP_MSG ? Placement::kConnectedProcesses : Placement::kTwoProcesses,
      options);
  ASSERT_TRUE(world.ok());
  World beside(Placement::kOneProcess, plain(FI_EP_RDM));
  ASSERT_TRUE(beside.ok());
  Endpoint& near = world.endpoint();
  Numbers sent(near.ep(), {.kind = kind, .length = length(), .peer = world.to_target(), .tag = 1});
  const bool all = sent.post_up_to(kFlood, [&] { read_entries(near.cq(), kRoomy); });
  EXPECT_FALSE(all && unexpected_are_limited()) << sent.count();
  beside.exchange();
  world.pump().add(near.counter(FI_SEND));
  std::vector<Token> received;
  while (received.size() < sent.count()) {
    received.push_back(world.target().post(
        {.kind = traits(kind).tagged ? Kind::kTrecv : Kind::kRecv, .length = length(), .tag = 1}));
  }
  world.target().expect_counter(FI_RECV, sent.count());
  for (std::size_t i = 0; i < received.size() && !HasFailure(); ++i) {
    world.target().expect_data(received[i], number_seed(i), length());
  }
  EXPECT_TRUE(until([&] { return ends(near, FI_SEND) == sent.count(); }));
  world.pump().remove(near.counter(FI_SEND));
  read_entries(near.cq(), kRoomy);
  if (!injects()) sent.expect_all_ended();
  EXPECT_EQ(world.target().leftovers(), 0U);
  near.close();
}
INSTANTIATE_TEST_SUITE_P(Resources, TargetEndpoint,
                         testing::Values(Cell{FI_EP_RDM, Kind::kSend},
                                         Cell{FI_EP_MSG, Kind::kTinject}),
                         ResourceTest::name);

class DgramTarget : public ResourceTest {};

TEST_P(DgramTarget, DropsWhatItHasNoRoomForAndTheSenderDoesNotWait) {
  ASSERT_NO_FATAL_FAILURE(open(roomy(), roomy()));
  Numbers& received = receives(GetParam().kind, length());
  for (std::size_t i = 0; i < kFlood + kContext; ++i) ASSERT_EQ(received.post(), 0);
  Numbers& sent = sends(GetParam().kind, length());
  while (sent.count() < kFlood) {
    ASSERT_EQ(sent.post(), 0) << sent.count();
    read_entries(near_->cq(), kRoomy);
  }
  others_go_on();
  if (!injects()) sent.expect_all_ended();
  for (int i = 0; i < 1000; ++i) read_entries(far_->cq(), kRoomy);
  EXPECT_GT(received.ended(), 0U);
  if (only_links("shm")) {
    EXPECT_LT(received.ended(), sent.count());
  }
  hear_another(sent, received);
}
INSTANTIATE_TEST_SUITE_P(Resources, DgramTarget,
                         testing::Values(Cell{FI_EP_DGRAM, Kind::kSenddata},
                                         Cell{FI_EP_DGRAM, Kind::kInjectdata}),
                         ResourceTest::name);

// --- Receive buffers ---------------------------------------------------------------------------

class NoReceive : public ResourceTest {};

TEST_P(NoReceive, HoldsSendersBackUntilThereAreSomeAndLosesNothing) {
  ASSERT_NO_FATAL_FAILURE(open(roomy(), roomy()));
  Numbers& sent = sends(GetParam().kind, length());
  const bool all = sent.post_up_to(kFlood, [&] {
    read_entries(near_->cq(), kRoomy);
    drive(*far_);
  });
  EXPECT_FALSE(all && unexpected_are_limited()) << sent.count();
  EXPECT_GE(sent.count(), kContext);
  others_go_on();
  Numbers& received = receives(GetParam().kind, length());
  drain(sent, received);
  expect_nothing_twice(received);
}
INSTANTIATE_TEST_SUITE_P(Resources, NoReceive,
                         testing::Values(Cell{FI_EP_RDM, Kind::kSend},
                                         Cell{FI_EP_RDM, Kind::kTsend},
                                         Cell{FI_EP_RDM, Kind::kInject},
                                         Cell{FI_EP_MSG, Kind::kSenddata},
                                         Cell{FI_EP_MSG, Kind::kTinject}),
                         ResourceTest::name);

class NoDgramReceive : public ResourceTest {};

TEST_P(NoDgramReceive, KeepsAFewAndDropsTheOthers) {
  ASSERT_NO_FATAL_FAILURE(open(roomy(), roomy()));
  Numbers& sent = sends(GetParam().kind, length());
  while (sent.count() < kFlood) {
    ASSERT_EQ(sent.post(), 0) << sent.count();
    read_entries(near_->cq(), kRoomy);
    drive(*far_);
  }
  for (int i = 0; i < 1000; ++i) drive(*far_);
  others_go_on();
  Numbers& received = receives(GetParam().kind, length());
  for (std::size_t i = 0; i < kFlood + kContext; ++i) ASSERT_EQ(received.post(), 0);
  for (int i = 0; i < 1000; ++i) read_entries(far_->cq(), kRoomy);
  EXPECT_GT(received.ended(), 0U);
  EXPECT_LT(received.ended(), kFlood / 4);
  hear_another(sent, received);
}
INSTANTIATE_TEST_SUITE_P(Resources, NoDgramReceive,
                         testing::Values(Cell{FI_EP_DGRAM, Kind::kSenddata},
                                         Cell{FI_EP_DGRAM, Kind::kInjectdata}),
                         ResourceTest::name);

// Every second message is too long. Errors need room in the queue as successes do.
class ReceiveOverrun : public ResourceTest {
 protected:
  static constexpr std::size_t kAll = 4 * kContext;
  Numbers& sends_of_two_lengths() {
    return rows_.emplace_back(length(), Numbers::Buffers::kSources, [this](Numbered& one) {
      return issue(near_->ep(),
                   {.kind = GetParam().kind,
                    .length = too_long(one.number) ? length() : kWord,
                    .peer = to_far_,
                    .tag = 1,
                    .data = one.number},
                   one.buffer.data(), one.context());
    });
  }
  static bool too_long(std::size_t number) { return number % 2 != 0; }
  static void expect_truncated(const Completion& end) {
    EXPECT_EQ(end.err, FI_ETRUNC);
    EXPECT_EQ(end.length, kWord);
    EXPECT_EQ(end.overflow, length() - kWord);
  }
};

TEST_P(ReceiveOverrun, TruncatesThatMessageAloneAndTheSendSucceeds) {
  Options far = roomy();
  far.cq_size = queue();
  ASSERT_NO_FATAL_FAILURE(open(roomy(), far));
  Numbers& received = receives(GetParam().kind, kWord);
  for (std::size_t i = 0; i < kAll; ++i) ASSERT_EQ(received.post(), 0);
  Numbers& sent = sends_of_two_lengths();
  EXPECT_TRUE(until([&] {
    if (sent.count() < kAll) sent.post();
    read_entries(near_->cq(), kRoomy);
    read_entries(far_->cq(), 1);
    const bool enough = lossy() && may_lose() && sent.count() == kAll;
    return sent.ended() == kAll && (received.ended() == kAll || enough);
  })) << received.ended();
  others_go_on();
  sent.expect_all_ended();
  for (std::size_t i = 0; i < received.ended() && !HasFailure(); ++i) {
    const Completion& end = received[i].end;
    const std::size_t number = lossy() ? end.data : i;
    EXPECT_EQ(received[i].buffer.check_guards(), "");
    if (too_long(number)) {
      expect_truncated(end);
    } else {
      EXPECT_EQ(end.err, 0);
      received.expect_holds(i, number);
    }
  }
}
INSTANTIATE_TEST_SUITE_P(Resources, ReceiveOverrun,
                         testing::Values(Cell{FI_EP_DGRAM, Kind::kSenddata, 1024},
                                         Cell{FI_EP_RDM, Kind::kSend, 1},
                                         Cell{FI_EP_RDM, Kind::kTsend, 2},
                                         Cell{FI_EP_MSG, Kind::kSend, 2},
                                         Cell{FI_EP_MSG, Kind::kTsend, 1}),
                         ResourceTest::name);

// --- Remote memory -----------------------------------------------------------------------------

class RefusedAccess : public ResourceTest {
 protected:
  // Accesses that end so many bytes behind the region, or are to no region at all.
  void expect_refused(std::uint64_t past_the_key, std::uint64_t past_the_end) {
    Options near = roomy();
    near.cq_size = queue();
    if (GetParam().silent) near.cq_flags = FI_SELECTIVE_COMPLETION;
    ASSERT_NO_FATAL_FAILURE(open(near, roomy()));
    const Region region = beside_far_->expose({.length = 8 * kWord});
    Region wrong = region;
    wrong.key += past_the_key;
    wrong.base += past_the_end;
    Numbers& refused = accesses(GetParam().kind, wrong);
    EXPECT_FALSE(refused.post_up_to(kFlood, [&] {
      drive(*near_);
      drive(*far_);
    })) << refused.count();
    EXPECT_GE(refused.count(), queue());
    others_go_on();
    const std::size_t all = refused.count() + 2 * kContext;
    EXPECT_TRUE(until([&] {
      if (refused.count() < all) refused.post();
      drive(*far_);
      read_entries(near_->cq(), 1);
      return refused.ended() == all;
    })) << refused.ended();
    refused.expect_all_ended(FI_EACCES);
    beside_far_->expect_region_blank(region, 0, region.length);
    expect_granted(region);
  }
  // The endpoint goes on.
  void expect_granted(const Region& region) {
    const std::uint64_t event = traits(GetParam().kind).read ? FI_READ : FI_WRITE;
    Numbers& granted = accesses(GetParam().kind, region);
    EXPECT_TRUE(until([&] {
      if (granted.count() < 8) granted.post();
      drive(*far_);
      read_entries(near_->cq(), 1);
      return ends(*near_, event) == 8;
    })) << ends(*near_, event);
    read_entries(near_->cq(), kRoomy);
    EXPECT_EQ(granted.ended(), GetParam().silent ? 0 : 8U);
  }
};

TEST_P(RefusedAccess, OfMemoryThatIsNotRegisteredIsReportedOnceAndTheEndpointGoesOn) {
  expect_refused(1000, 0);
}

TEST_P(RefusedAccess, BehindTheEndOfARegionIsReportedOnceAndTheEndpointGoesOn) {
  expect_refused(0, 8 * kWord);
}
INSTANTIATE_TEST_SUITE_P(
    Resources, RefusedAccess,
    testing::Values(Cell{FI_EP_RDM, Kind::kWrite}, Cell{FI_EP_RDM, Kind::kRead, 1},
                    Cell{FI_EP_RDM, Kind::kAtomic}, Cell{FI_EP_MSG, Kind::kWrite, 1},
                    Cell{FI_EP_MSG, Kind::kRead}, Cell{FI_EP_MSG, Kind::kFetchAtomic, 1},
                    Cell{FI_EP_RDM, Kind::kWrite, 2, 0, true},
                    Cell{FI_EP_MSG, Kind::kRead, 2, 0, true}),
    ResourceTest::name);

// An injected access is refused by the call within the host, and else by an entry without a
// context.
class RefusedInject : public ResourceTest {};

TEST_P(RefusedInject, IsReportedOnceAndTheEndpointGoesOn) {
  Options near = roomy();
  near.cq_size = queue();
  ASSERT_NO_FATAL_FAILURE(open(near, roomy()));
  const Region region = beside_far_->expose({.length = kWord});
  const std::uint64_t word = 0;
  const auto inject = [&](std::uint64_t key) {
    return fi_inject_write(near_->ep(), &word, kWord, to_far_, region.base, key);
  };
  std::size_t pending = 0;
  std::size_t answered = 0;
  std::size_t reported = 0;
  EXPECT_TRUE(until([&] {
    const ssize_t rc = inject(region.key + 1000);
    EXPECT_TRUE(rc == 0 || rc == -FI_EACCES || rc == -FI_EAGAIN) << rc;
    pending += rc == 0;
    answered += rc == -FI_EACCES;
    drive(*far_);
    drive(*near_);
    return HasFailure() || answered == 4 * kContext || (pending >= queue() && rc == -FI_EAGAIN);
  })) << pending;
  others_go_on();
  EXPECT_TRUE(until([&] {
    drive(*far_);
    for (const Completion& one : read_entries(near_->cq(), 1)) {
      EXPECT_EQ(one.err, FI_EACCES);
      EXPECT_EQ(one.context, nullptr);
      ++reported;
    }
    return reported == pending;
  })) << reported
      << " of " << pending;
  EXPECT_TRUE(until([&] { return inject(region.key) == 0; }));
  EXPECT_TRUE(until([&] {
    drive(*far_);
    return ends(*near_, FI_WRITE) == 1;
  }));
  EXPECT_TRUE(read_entries(near_->cq(), 1).empty());
}
INSTANTIATE_TEST_SUITE_P(Resources, RefusedInject,
                         testing::Values(Cell{FI_EP_RDM, Kind::kInjectWrite},
                                         Cell{FI_EP_MSG, Kind::kInjectWrite, 1}),
                         ResourceTest::name);

class DgramRemoteAccess : public ResourceTest {};

TEST_P(DgramRemoteAccess, IsNotOffered) {
  ASSERT_NO_FATAL_FAILURE(open(roomy(), roomy()));
  std::uint8_t bytes[kWord]{};
  EXPECT_EQ(fi_write(near_->ep(), bytes, kWord, nullptr, to_far_, 0, 1, nullptr), -FI_ENOSYS);
  EXPECT_EQ(fi_atomic(near_->ep(), bytes, 1, nullptr, to_far_, 0, 1, FI_UINT64, FI_SUM, nullptr),
            -FI_ENOSYS);
  Options wished = plain(FI_EP_DGRAM);
  wished.caps = FI_MSG | FI_RMA;
  int rc = 0;
  EXPECT_EQ(get_info(wished, make_hints(wished).get(), &rc), nullptr);
  EXPECT_EQ(rc, -FI_ENODATA);
}
INSTANTIATE_TEST_SUITE_P(Resources, DgramRemoteAccess,
                         testing::Values(Cell{FI_EP_DGRAM, Kind::kWrite}), ResourceTest::name);

}  // namespace
}  // namespace weft::conformance
