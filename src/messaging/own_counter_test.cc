// SPDX-License-Identifier: BSD-2-Clause
// Does an operation with a counter of its own count there and nowhere else, and keep it in use?
#include "memory/region_table.h"
#include "test_support.h"

namespace weft::messaging {
namespace {

using namespace testing;

class OwnCounterTest : public EndpointTest {
 protected:
  int send(std::uint64_t tag, Bytes& bytes, bool wanted = false) {
    return one.send(to_two, tag, bytes, &contexts[0], [&](SendCall& call) {
      call.report = {&contexts[0], wanted, &own};
    });
  }
  int receive(Node& node, std::uint64_t tag, Bytes& bytes, bool multi = false) {
    const LocalRange sge{bytes.data(), bytes.size()};
    ReceiveCall call;
    call.tagged = !multi;
    call.tag = tag;
    call.sges = {&sge, 1};
    call.multi = multi;
    call.least = 64;
    call.report = {&contexts[1], false, &own};
    return node.endpoint->receives().receive(call);
  }
  SendCall to_peer(const LocalRange& sge) {
    SendCall call;
    call.peer = to_two;
    call.sges = {&sge, 1};
    call.report.context = &contexts[0];
    return call;
  }
  bool counted(std::uint64_t value, std::uint64_t errors = 0) {
    return drive([&] { return own.value() == value && own.errors() == errors; });
  }

  device::Counter own{true, device::WaitKind::kNone};
};

TEST_F(OwnCounterTest, ASendOfAnySizeCountsThereOnly) {
  std::uint64_t done = 0;
  for (const std::size_t length : {0u, 64u, 5000u, 200000u}) {
    Bytes out = pattern(length, 1);
    Bytes in(length);
    ASSERT_EQ(two.receive(1, in), 0);
    ASSERT_EQ(send(1, out), 0);
    EXPECT_TRUE(counted(++done)) << length;
    EXPECT_FALSE(own.in_use());
    EXPECT_EQ(next(two, false).status, CompletionStatus::kSuccess);
    EXPECT_TRUE(in == out);
  }
  EXPECT_EQ(one.sends.value(), 0u);
  EXPECT_TRUE(one.tx.empty());
}

TEST_F(OwnCounterTest, ASendThatWantsAnEntryHasOneBesides) {
  Bytes out(8);
  ASSERT_EQ(send(1, out, true), 0);
  EXPECT_EQ(next(one, true).context, &contexts[0]);
  EXPECT_TRUE(counted(1));
}

TEST_F(OwnCounterTest, AReceiveOfAnySizeCountsThereOnly) {
  std::uint64_t done = 0;
  for (const std::size_t length : {0u, 64u, 5000u, 200000u}) {
    Bytes out = pattern(length, 1);
    Bytes in(length);
    ASSERT_EQ(receive(two, 1, in), 0);
    EXPECT_TRUE(own.in_use()) << "it waits for a message";
    ASSERT_EQ(one.send(to_two, 1, out), 0);
    EXPECT_TRUE(counted(++done));
    EXPECT_FALSE(own.in_use());
    EXPECT_TRUE(in == out);
    EXPECT_EQ(next(one, true).status, CompletionStatus::kSuccess);
  }
  EXPECT_TRUE(two.rx.empty());
}

TEST_F(OwnCounterTest, ATruncatedReceiveCountsAsAnErrorAndHasNoEntry) {
  Bytes out(100);
  Bytes in(10);
  ASSERT_EQ(receive(two, 1, in), 0);
  ASSERT_EQ(one.send(to_two, 1, out), 0);
  EXPECT_TRUE(counted(0, 1));
  EXPECT_TRUE(two.rx.empty());
}

// Every message is a completion; giving the buffer back is told in the queue all the same.
TEST_F(OwnCounterTest, AMultiReceiveCountsEachMessage) {
  Bytes in(200);
  Bytes out(60);
  ASSERT_EQ(receive(two, 0, in, true), 0);
  for (int i = 0; i < 3; ++i) {
    ASSERT_EQ(one.send(to_two, 0, out, nullptr,
                       [](SendCall& call) { call.operation = link::MessageOperation::kMessage; }),
              0);
  }
  EXPECT_TRUE(counted(3));
  EXPECT_FALSE(own.in_use());
  EXPECT_EQ(next(two, false).flags & device::kMultiReceive, device::kMultiReceive);
}

TEST_F(OwnCounterTest, AFailureCountsAsAnErrorAndHasAnEntryOnlyIfASuccessHasOne) {
  const PeerIndex absent = one.addresses.insert(loopback(7999));
  Bytes out(8);
  for (const bool wanted : {false, true}) {
    int status = EAGAIN;
    EXPECT_TRUE(drive([&] {
      if (status != EAGAIN) return true;
      status = one.send(absent, 1, out, &contexts[0], [&](SendCall& call) {
        call.report = {&contexts[0], wanted, &own};
      });
      return status != EAGAIN;
    }));
    EXPECT_EQ(status, 0);
    EXPECT_EQ(own.errors(), wanted ? 2u : 1u);
    EXPECT_EQ(one.tx.has_error(), wanted);
  }
  EXPECT_EQ(one.sends.errors(), 0u);
}

TEST_F(OwnCounterTest, AnAbandonedOperationIsReportedAsFailed) {
  Bytes bytes(8);
  const LocalRange sge{bytes.data(), bytes.size()};
  const SendCall call = to_peer(sge);
  one.endpoint->abandon(call, ECANCELED);
  EXPECT_EQ(next(one, true).status, CompletionStatus::kCancelled);
  EXPECT_EQ(one.sends.errors(), 1u);
  ReceiveCall receive;
  receive.sges = {&sge, 1};
  receive.report.context = &contexts[1];
  one.endpoint->receives().abandon(receive, ECANCELED);
  const Completion failed = next(one, false);
  EXPECT_EQ(failed.status, CompletionStatus::kCancelled);
  EXPECT_EQ(failed.context, &contexts[1]);
}

TEST_F(OwnCounterTest, ARefusedOperationIsReportedWithItsReason) {
  constexpr int kReason = 17;
  Bytes bytes(8);
  const LocalRange sge{bytes.data(), bytes.size()};
  const SendCall call = to_peer(sge);
  const RefusedAccess refused{.reason = kReason, .range = {0x1000, 8, RegionKey{5}}};
  EXPECT_EQ(one.endpoint->refuse(call, refused), 0);
  const Completion sent = next(one, true);
  EXPECT_EQ(sent.context, &contexts[0]);
  EXPECT_EQ(sent.status, CompletionStatus::kRemoteAccess);
  EXPECT_EQ(sent.reason, kReason);
  EXPECT_EQ(sent.refused().range.address, 0x1000u);
  EXPECT_EQ(one.sends.errors(), 1u);
  ReceiveCall receive;
  receive.sges = {&sge, 1};
  receive.multi = true;
  receive.report.context = &contexts[1];
  EXPECT_EQ(one.endpoint->receives().refuse(receive, refused), 0);
  const Completion received = next(one, false);
  EXPECT_EQ(received.context, &contexts[1]);
  EXPECT_EQ(received.reason, kReason);
  EXPECT_EQ(received.refused().range.key, RegionKey{5});
  EXPECT_NE(received.flags & device::kMultiReceive, 0u) << "the buffer is the program's again";
}

TEST_F(OwnCounterTest, ARefusalWaitsForRoomInTheQueue) {
  Bytes out(8);
  while (!one.tx.full()) {
    if (one.send(to_two, 1, out) == EAGAIN) settle();
  }
  SendCall call;
  call.peer = to_two;
  EXPECT_EQ(one.endpoint->refuse(call, {.reason = 17}), EAGAIN);
}

TEST_F(OwnCounterTest, AFullQueueDoesNotHoldBackWhatHasNoEntry) {
  Bytes out(8);
  while (!one.tx.full()) {
    if (one.send(to_two, 1, out) == EAGAIN) settle();
  }
  settle();
  EXPECT_EQ(one.send(to_two, 1, out), EAGAIN);
  EXPECT_EQ(send(1, out, true), EAGAIN);
  EXPECT_EQ(send(1, out), 0);
  EXPECT_TRUE(counted(1));
}

TEST_F(OwnCounterTest, AnEndpointThatClosesLetsTheCountersOfWhatIsPendingGo) {
  Bytes out(200000);
  Bytes in(8);
  ASSERT_EQ(send(1, out), 0);
  ASSERT_EQ(receive(one, 5, in), 0);
  EXPECT_TRUE(own.in_use());
  one.endpoint.reset();
  EXPECT_FALSE(own.in_use());
  EXPECT_EQ(own.value() + own.errors(), 0u);
}

// Peers tell of accesses to regions that asked for it.
TEST_F(OwnCounterTest, AnAccessToACountedRegionCountsWhereTheRegionIsBound) {
  device::RegionCounters counters;
  EndpointSetup wanted;
  AddressVector addresses{8};
  wanted.device = setup.device;
  wanted.addresses = &addresses;
  wanted.place = wanted.name = loopback(7003);
  wanted.domain = setup.device->new_domain();
  wanted.region_counters = &counters;
  const auto target = std::move(Endpoint::open(wanted)).value();
  Bytes memory(64);
  memory::RegionAttributes region;
  region.domain = wanted.domain;
  region.access = Access::kRemoteWrite;
  region.base = reinterpret_cast<std::uint64_t>(memory.data());
  region.length = memory.size();
  region.key = RegionKey{3};
  const auto registered = setup.device->regions().add(region).value();
  ASSERT_TRUE(counters.bind(region.key, this, Access::kRemoteWrite, own));
  setup.device->regions().report_accesses(registered, Access::kRemoteWrite);
  Bytes out = pattern(64, 2);
  const LocalRange local{out.data(), out.size()};
  const RemoteRange remote{0, 64, region.key};
  AccessCall call;
  call.peer = one.addresses.insert(loopback(7003));
  call.write = true;
  call.local = {&local, 1};
  call.remote = {&remote, 1};
  call.length = 64;
  ASSERT_EQ(one.endpoint->access(call), 0);
  EXPECT_TRUE(drive([&] {
    target->port().progress();
    return own.value() == 1;
  }));
  EXPECT_TRUE(memory == out);
  EXPECT_TRUE(setup.device->regions().remove(registered).ok());
}

}  // namespace
}  // namespace weft::messaging
