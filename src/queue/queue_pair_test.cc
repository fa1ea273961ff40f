// SPDX-License-Identifier: BSD-2-Clause
// Does each work request do at the peer what it says, and end as it should?
#include "queue/queue_pair.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <numeric>

#include "device/provider_error.h"
#include "test_support.h"

namespace weft::queue::testing {
namespace {

using ::testing::ElementsAre;
using work::CompletionStatus;
using work::WorkKind;

void fill(std::vector<std::byte>& memory, std::uint8_t seed) {
  for (std::size_t i = 0; i < memory.size(); ++i) {
    memory[i] = static_cast<std::byte>(seed + i * 7 + (i >> 8));
  }
}

QpSendRequest access(WorkKind kind, std::span<const work::Segment> sges, std::uint64_t address,
                     std::uint32_t key) {
  QpSendRequest request;
  request.work.kind = kind;
  request.work.sges = sges;
  for (const auto& each : sges) request.work.length += each.length;
  request.work.address = address;
  request.work.key = key;
  request.opcode = kind == WorkKind::kRead       ? CompletionOpcode::kRead
                   : kind == WorkKind::kWrite    ? CompletionOpcode::kWrite
                   : kind == WorkKind::kFetchAdd ? CompletionOpcode::kFetchAdd
                                                 : CompletionOpcode::kCompareSwap;
  return request;
}

class Sizes : public ::testing::TestWithParam<std::size_t> {};
INSTANTIATE_TEST_SUITE_P(All, Sizes,
                         ::testing::Values(0, 1, 255, 1024, 1025, 65'536, std::size_t{1} << 20));

TEST_P(Sizes, ASendArrivesInTheReceivesOfTheirOrder) {
  Couple two(QpType::kRc);
  fill(two.a.memory, 1);
  const std::size_t half = GetParam() / 2;
  const work::Segment out[] = {two.a.part(0, half), two.a.part(half, GetParam() - half)};
  const work::Segment in[] = {two.b.part(0, GetParam() - half), two.b.part(1 << 20, half)};
  ASSERT_EQ(two.b.receive(in, 7), 0);
  ASSERT_EQ(two.a.send(out, 9), 0);
  const auto sent = two.a.next_sent();
  EXPECT_EQ(sent.status, CompletionStatus::kSuccess);
  EXPECT_EQ(reinterpret_cast<std::uint64_t>(sent.context), 9u);
  const auto received = two.b.next_received();
  EXPECT_EQ(received.status, CompletionStatus::kSuccess);
  EXPECT_EQ(reinterpret_cast<std::uint64_t>(received.context), 7u);
  EXPECT_EQ(received.length, GetParam());
  EXPECT_EQ(std::memcmp(two.b.memory.data(), two.a.memory.data(), GetParam() - half), 0);
  EXPECT_EQ(
      std::memcmp(two.b.memory.data() + (1 << 20), two.a.memory.data() + (GetParam() - half), half),
      0);
}

TEST_P(Sizes, AWriteAndAReadMoveTheirBytes) {
  Couple two(QpType::kRc);
  fill(two.a.memory, 3);
  const work::Segment out[] = {two.a.part(0, GetParam())};
  ASSERT_EQ(two.a.post(access(WorkKind::kWrite, out, two.b.address(64), two.b.key())), 0);
  EXPECT_EQ(two.a.next_sent().status, CompletionStatus::kSuccess);
  EXPECT_EQ(std::memcmp(two.memory_of_b() + 64, two.a.memory.data(), GetParam()), 0);
  const work::Segment in[] = {two.a.part(1 << 20, GetParam())};
  ASSERT_EQ(two.a.post(access(WorkKind::kRead, in, two.b.address(64), two.b.key())), 0);
  const auto read = two.a.next_sent();
  EXPECT_EQ(read.status, CompletionStatus::kSuccess);
  EXPECT_EQ(read.length, GetParam());
  EXPECT_EQ(std::memcmp(two.a.memory.data() + (1 << 20), two.a.memory.data(), GetParam()), 0);
}

TEST_P(Sizes, AnUnreliableConnectionCarriesSendsAndWrites) {
  Couple two(QpType::kUc);
  fill(two.a.memory, 5);
  const work::Segment in[] = {two.b.part(0, GetParam())};
  ASSERT_EQ(two.b.receive(in), 0);
  const work::Segment out[] = {two.a.part(0, GetParam())};
  ASSERT_EQ(two.a.send(out), 0);
  EXPECT_EQ(two.a.next_sent().status, CompletionStatus::kSuccess);
  EXPECT_EQ(two.b.next_received().length, GetParam());
  EXPECT_EQ(std::memcmp(two.b.memory.data(), two.a.memory.data(), GetParam()), 0);
}

TEST(QueuePair, AtomicOperationsReturnTheFormerValue) {
  Couple two(QpType::kRc);
  std::uint64_t value = 40;
  {
    const MutexLock guard(two.b.port->lock());  // the background thread may execute the request
    std::memcpy(two.b.memory.data(), &value, 8);
  }
  const work::Segment to[] = {two.a.part(8, 8)};
  QpSendRequest add = access(WorkKind::kFetchAdd, to, two.b.address(0), two.b.key());
  add.work.swap_or_add = 2;
  ASSERT_EQ(two.a.post(add), 0);
  EXPECT_EQ(two.a.next_sent().status, CompletionStatus::kSuccess);
  std::memcpy(&value, two.a.memory.data() + 8, 8);
  EXPECT_EQ(value, 40u);
  QpSendRequest swap = access(WorkKind::kCompareSwap, to, two.b.address(0), two.b.key());
  swap.work.compare = 42;
  swap.work.swap_or_add = 99;
  ASSERT_EQ(two.a.post(swap), 0);
  EXPECT_EQ(two.a.next_sent().status, CompletionStatus::kSuccess);
  std::memcpy(&value, two.a.memory.data() + 8, 8);
  EXPECT_EQ(value, 42u);
  std::memcpy(&value, two.memory_of_b(), 8);
  EXPECT_EQ(value, 99u);
}

TEST(QueuePair, AWriteWithImmediateDataTakesAReceive) {
  Couple two(QpType::kRc);
  ASSERT_EQ(two.b.receive({}, 5), 0);
  const work::Segment out[] = {two.a.part(0, 3000)};
  QpSendRequest write = access(WorkKind::kWrite, out, two.b.address(0), two.b.key());
  write.work.has_immediate = true;
  write.work.immediate = 0xABCD;
  ASSERT_EQ(two.a.post(write), 0);
  EXPECT_EQ(two.a.next_sent().status, CompletionStatus::kSuccess);
  const auto told = two.b.next_received();
  EXPECT_EQ(opcode_of(told), CompletionOpcode::kReceiveWrite);
  EXPECT_EQ(told.length, 3000u);
  EXPECT_EQ(told.data, 0xABCDu);
}

TEST(QueuePair, ADatagramBeginsWithAGlobalRoutingHeader) {
  Couple two(QpType::kUd);
  fill(two.a.memory, 9);
  const work::Segment in[] = {two.b.part(0, 200)};
  ASSERT_EQ(two.b.receive(in), 0);
  const AddressHandle to(two.a.domain, End::usual().address);
  const work::Segment out[] = {two.a.part(0, 100)};
  QpSendRequest request;
  request.work.sges = out;
  request.work.length = 100;
  request.to = &to;
  request.destination = two.b.pair->qpn();
  request.queue_key = 0x1234;
  ASSERT_EQ(two.a.post(request), 0);
  EXPECT_EQ(two.a.next_sent().status, CompletionStatus::kSuccess);
  const auto received = two.b.next_received();
  EXPECT_EQ(received.length, 140u);
  EXPECT_EQ(sender_of(received), two.a.pair->qpn());
  EXPECT_EQ(qpn_of(received), two.b.pair->qpn());
  EXPECT_EQ(two.b.memory[20], std::byte{0x45});
  EXPECT_EQ(std::memcmp(two.b.memory.data() + 40, two.a.memory.data(), 100), 0);
}

TEST(QueuePair, WithoutAReceiveTheSenderWaitsForOne) {
  Couple two(QpType::kRc);
  const work::Segment out[] = {two.a.part(0, 10)};
  ASSERT_EQ(two.a.send(out), 0);
  for (int i = 0; i < 100; ++i) two.b.received->engines().progress();
  EXPECT_TRUE(two.a.sent->empty());
  const work::Segment in[] = {two.b.part(0, 10)};
  ASSERT_EQ(two.b.receive(in), 0);
  EXPECT_EQ(two.a.next_sent().status, CompletionStatus::kSuccess);
}

TEST(QueuePair, WithoutAReceiveFiniteRetriesEndInAnError) {
  QpAttributes few = End::usual();
  few.rnr_retries = 1;
  Couple two(QpType::kRc, few);
  const work::Segment out[] = {two.a.part(0, 10)};
  ASSERT_EQ(two.a.send(out), 0);
  EXPECT_EQ(two.a.next_sent().status, CompletionStatus::kRnrRetryExceeded);
  two.await_threads();
  EXPECT_EQ(two.a.pair->state(), QpState::kError);
}

TEST(QueuePair, ATooLongSendFailsAtBothEnds) {
  Couple two(QpType::kRc);
  const work::Segment in[] = {two.b.part(0, 9)};
  ASSERT_EQ(two.b.receive(in, 1), 0);
  ASSERT_EQ(two.b.receive(in, 2), 0);
  const work::Segment out[] = {two.a.part(0, 10)};
  ASSERT_EQ(two.a.send(out, 1), 0);
  ASSERT_EQ(two.a.send(out, 2), 0);
  EXPECT_EQ(two.a.next_sent().status, CompletionStatus::kRemoteInvalidRequest);
  EXPECT_EQ(two.a.next_sent().status, CompletionStatus::kFlushed);
  EXPECT_EQ(two.b.next_received().status, CompletionStatus::kLocalLength);
  EXPECT_EQ(two.b.next_received().status, CompletionStatus::kFlushed);
  two.await_threads();
  EXPECT_EQ(two.b.pair->state(), QpState::kError);
}

TEST(QueuePair, ARefusedWriteSaysWhyAndEndsBothQueuePairs) {
  Couple two(QpType::kRc);
  const work::Segment out[] = {two.a.part(0, 10)};
  ASSERT_EQ(two.a.post(access(WorkKind::kWrite, out, two.b.address(0), two.b.key() + 1)), 0);
  const auto ended = two.a.next_sent();
  EXPECT_EQ(ended.status, CompletionStatus::kRemoteAccess);
  EXPECT_EQ(ended.reason, static_cast<std::uint8_t>(memory::AccessError::kUnknownKey));
  two.await_threads();
  EXPECT_EQ(two.a.pair->query().state, QpState::kError);
  EXPECT_EQ(two.b.pair->state(), QpState::kError);
  ASSERT_FALSE(two.b.events.empty());
  EXPECT_EQ(two.b.events.back(), QpEvent::kAccessError);
}

TEST(QueuePair, AWrongLocalKeyIsFoundBeforeAPacketLeaves) {
  Couple two(QpType::kRc);
  work::Segment out[] = {two.a.part(0, 10)};
  out[0].key += 1;
  ASSERT_EQ(two.a.send(out, 1), 0);
  const auto ended = two.a.next_sent();
  EXPECT_EQ(ended.status, CompletionStatus::kLocalProtection);
  EXPECT_EQ(ended.reason, static_cast<std::uint8_t>(memory::AccessError::kUnknownKey));
}

TEST(QueuePair, ARefusedAccessIsExplainedAtBothEnds) {
  Couple two(QpType::kRc);
  const work::Segment in[] = {two.a.part(0, 64)};
  QpSendRequest read;
  read.opcode = CompletionOpcode::kRead;
  read.work.kind = work::WorkKind::kRead;
  read.work.sges = in;
  read.work.length = 64;
  read.work.address = two.b.address(two.b.memory.size() - 56);
  read.work.key = two.b.key();
  ASSERT_EQ(two.a.post(read), 0);
  const auto ended = two.a.next_sent();
  EXPECT_EQ(ended.status, CompletionStatus::kRemoteAccess);
  EXPECT_EQ(device::provider_error(ended),
            device::kRefusals + static_cast<int>(memory::AccessError::kPastEnd));
  const std::string range = fmt::format("64 bytes at {:#x}", read.work.address);
  EXPECT_THAT(two.a.sentences(),
              ElementsAre(fmt::format("QP {:#x}: RDMA READ of {} with rkey {:#x} was refused by QP "
                                      "{:#x} of 127.0.0.1: the access ends past the region",
                                      two.a.pair->qpn(), range, two.b.key(), two.b.pair->qpn())));
  two.await_threads();
  EXPECT_THAT(
      two.b.sentences(),
      ElementsAre(fmt::format("QP {:#x} refused a request of QP {:#x} of 127.0.0.1: rkey {:#x}: "
                              "read of {} ends 8 bytes past the region (region: {} bytes from "
                              "{:#x})",
                              two.b.pair->qpn(), two.a.pair->qpn(), two.b.key(), range,
                              two.b.memory.size(), two.b.address(0))));
}

TEST(QueuePair, RepeatedRefusalsAreExplainedOnceASecond) {
  std::vector<std::string> lines;
  RefusalLog log([&](const std::string& line) { lines.push_back(line); });
  for (int i = 0; i < 1000; ++i) {
    log.own([] { return "own"; });
    log.of_peer([] { return "peer"; });
  }
  EXPECT_LT(lines.size(), 1000U);
  EXPECT_THAT((std::vector<std::string>{lines[0], lines[1]}), ElementsAre("own", "peer"));
}

TEST(QueuePair, AFullSendQueueTakesNoMoreUntilACompletionWasPolled) {
  Couple two(QpType::kRc);
  const work::Segment in[] = {two.b.part(0, 10)};
  for (int i = 0; i < 64; ++i) ASSERT_EQ(two.b.receive(in), 0);
  EXPECT_EQ(two.b.receive(in), ENOMEM);
  const work::Segment out[] = {two.a.part(0, 10)};
  for (int i = 0; i < 64; ++i) ASSERT_EQ(two.a.send(out), 0);
  EXPECT_EQ(two.a.send(out), ENOMEM);
  EXPECT_EQ(two.a.next_sent().status, CompletionStatus::kSuccess);
  EXPECT_EQ(two.a.send(out), 0);
}

TEST(QueuePair, ResetDropsEverythingWithoutCompletions) {
  Couple two(QpType::kRc);
  const work::Segment out[] = {two.a.part(0, 10)};
  for (int i = 0; i < 10; ++i) ASSERT_EQ(two.a.send(out), 0);
  ASSERT_TRUE(two.a.to(QpState::kReset, {}, 0).ok());
  two.a.sent->engines().progress();
  EXPECT_TRUE(two.a.sent->empty());
  EXPECT_EQ(two.a.send(out), EINVAL);
}

TEST(QueuePair, InTheErrorStateEveryPostIsFlushed) {
  Couple two(QpType::kRc);
  const work::Segment in[] = {two.a.part(0, 10)};
  ASSERT_EQ(two.a.receive(in, 1), 0);
  ASSERT_TRUE(two.a.to(QpState::kError, {}, 0).ok());
  ASSERT_EQ(two.a.receive(in, 2), 0);
  ASSERT_EQ(two.a.send(in, 3), 0);
  EXPECT_EQ(two.a.next_received().status, CompletionStatus::kFlushed);
  EXPECT_EQ(two.a.next_received().status, CompletionStatus::kFlushed);
  EXPECT_EQ(two.a.next_sent().status, CompletionStatus::kFlushed);
}

// Its acknowledgement waits for the answer that followed each message before. The thread sanitizer
// sees no order between mappings of one ring: what is sent lies beside what is received.
TEST(QueuePair, AMessageThatArrivedBeforeAnErrorIsAcknowledged) {
  Couple two(QpType::kRc);
  const work::Segment in_a[] = {two.a.part(0, 8)};
  const work::Segment in_b[] = {two.b.part(0, 8)};
  const work::Segment out_a[] = {two.a.part(64, 8)};
  const work::Segment out_b[] = {two.b.part(64, 8)};
  constexpr int kTurns = 20;
  for (int i = 0; i < kTurns; ++i) {
    ASSERT_EQ(two.a.receive(in_a), 0);
    ASSERT_EQ(two.b.receive(in_b), 0);
    ASSERT_EQ(two.a.send(out_a), 0);
    ASSERT_EQ(two.b.next_received().status, CompletionStatus::kSuccess);
    if (i + 1 == kTurns) break;
    ASSERT_EQ(two.b.send(out_b), 0);
    ASSERT_EQ(two.a.next_received().status, CompletionStatus::kSuccess);
    ASSERT_EQ(two.a.next_sent().status, CompletionStatus::kSuccess);
    ASSERT_EQ(two.b.next_sent().status, CompletionStatus::kSuccess);
  }
  ASSERT_TRUE(two.b.to(QpState::kError, {}, 0).ok());
  EXPECT_EQ(two.a.next_sent().status, CompletionStatus::kSuccess);
}

TEST(QueuePair, AnAbsentPeerEndsTheWorkWhenTheRetriesAreUsed) {
  QpAttributes brief = End::usual();
  brief.timeout = 8;
  brief.retries = 1;
  End a(QpType::kRc);
  std::uint32_t gone = 0;
  {
    End b(QpType::kRc);
    gone = b.pair->qpn();
  }
  a.connect(gone, brief);
  const work::Segment out[] = {a.part(0, 10)};
  ASSERT_EQ(a.send(out, 1), 0);
  ASSERT_EQ(a.send(out, 2), 0);
  EXPECT_EQ(a.next_sent().status, CompletionStatus::kRetryExceeded);
  EXPECT_EQ(a.next_sent().status, CompletionStatus::kFlushed);
}

}  // namespace
}  // namespace weft::queue::testing
