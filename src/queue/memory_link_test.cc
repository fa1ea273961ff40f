// SPDX-License-Identifier: BSD-2-Clause
// Do operations through shared memory take effect, and fail, in their order?
#include "memory_link.h"

#include <gtest/gtest.h>

#include <cstring>
#include <thread>

#include "link_shm/names.h"
#include "os/mapping.h"
#include "os/shared_file.h"
#include "test_support.h"

namespace weft::queue::testing {
namespace {

using work::CompletionStatus;
using work::WorkKind;

constexpr std::byte kMark{0x5A};

// A couple that must not have fallen back to packets.
struct NearCouple : Couple {
  explicit NearCouple(const QpAttributes& with = End::usual()) : Couple(QpType::kRc, with, true) {}
  ~NearCouple() {
    for (End* const end : {&a, &b}) {
      EXPECT_EQ(end->port->stats().of(Stat::kRequests), 0u);
      EXPECT_EQ(end->port->stats().of(Stat::kResponses), 0u);
    }
  }
  NearCouple(const NearCouple&) = delete;
  NearCouple& operator=(const NearCouple&) = delete;

  int write(std::size_t length, std::size_t to, std::uint64_t id = 0) {
    const work::Segment out[] = {a.part(0, length)};
    QpSendRequest request;
    request.id = id;
    request.opcode = CompletionOpcode::kWrite;
    request.work.kind = WorkKind::kWrite;
    request.work.sges = out;
    request.work.length = length;
    request.work.address = b.address(to);
    request.work.key = b.key();
    return a.post(request);
  }
  int send(std::size_t length, std::uint64_t id = 0) {
    const work::Segment out[] = {a.part(0, length)};
    return a.send(out, id);
  }
  int receive(std::size_t length) {
    const work::Segment in[] = {b.part(1 << 20, length)};
    return b.receive(in);
  }
  // The byte that a thread sees which polls memory of the target.
  std::byte seen(std::size_t at) { return *static_cast<volatile std::byte*>(b.memory.data() + at); }
};

QpAttributes impatient() {
  QpAttributes attributes = End::usual();
  attributes.rnr_timer = 14;  // 1.28 ms
  attributes.rnr_retries = 2;
  return attributes;
}

TEST(MemoryLink, WritesAtThePost) {
  NearCouple two;
  two.a.memory[7] = kMark;
  ASSERT_EQ(two.write(8, 64), 0);
  EXPECT_EQ(two.seen(64 + 7), kMark);
  EXPECT_EQ(two.a.next_sent().status, CompletionStatus::kSuccess);
}

TEST(MemoryLink, AWriteBehindASendWithoutAReceiveWaits) {
  NearCouple two;
  std::ranges::fill(two.a.memory, kMark);
  ASSERT_EQ(two.send(8, 1), 0);
  ASSERT_EQ(two.write(8, 64, 2), 0);
  for (int i = 0; i < 20; ++i) {
    two.a.port->progress();
    two.b.port->progress();
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    ASSERT_EQ(two.seen(64), std::byte{0});
  }
  ASSERT_EQ(two.receive(8), 0);
  EXPECT_EQ(reinterpret_cast<std::uint64_t>(two.a.next_sent().context), 1u);
  EXPECT_EQ(reinterpret_cast<std::uint64_t>(two.a.next_sent().context), 2u);
  EXPECT_EQ(two.seen(64), kMark);
  EXPECT_EQ(two.b.next_received().length, 8u);
}

TEST(MemoryLink, ASendThatFindsNoReceiveEndsTheConnection) {
  NearCouple two(impatient());
  const Time begin = Time::clock::now();
  ASSERT_EQ(two.send(8, 1), 0);
  ASSERT_EQ(two.write(8, 64, 2), 0);
  EXPECT_EQ(two.a.next_sent().status, CompletionStatus::kRnrRetryExceeded);
  EXPECT_EQ(two.a.next_sent().status, CompletionStatus::kFlushed);
  EXPECT_GE(Time::clock::now() - begin, 2 * std::chrono::microseconds(1280));
  // It was given up: no receive takes it.
  ASSERT_EQ(two.receive(8), 0);
  for (int i = 0; i < 20; ++i) two.b.port->progress();
  EXPECT_TRUE(two.b.received->empty());
  EXPECT_EQ(two.seen(64), std::byte{0});
}

TEST(MemoryLink, AMessageOfManyPartsArrivesWhole) {
  NearCouple two;
  for (std::size_t i = 0; i < two.a.memory.size(); ++i) {
    two.a.memory[i] = static_cast<std::byte>(i * 7 + (i >> 8));
  }
  for (const std::size_t length : {std::size_t{104}, std::size_t{105}, std::size_t{4096},
                                   std::size_t{4097}, std::size_t{100'000}, std::size_t{1} << 20}) {
    SCOPED_TRACE(length);
    ASSERT_EQ(two.receive(length), 0);
    ASSERT_EQ(two.send(length), 0);
    EXPECT_EQ(two.a.next_sent().status, CompletionStatus::kSuccess);
    EXPECT_EQ(two.b.next_received().length, length);
    const MutexLock guard(two.b.port->lock());
    EXPECT_EQ(std::memcmp(two.b.memory.data() + (1 << 20), two.a.memory.data(), length), 0);
  }
}

TEST(MemoryLink, LeavingRtsEndsAccessesOfThePeer) {
  NearCouple two(impatient());
  ASSERT_TRUE(two.b.to(QpState::kError, {}, 0).ok());
  std::ranges::fill(two.a.memory, kMark);
  ASSERT_EQ(two.write(8, 64), 0);
  EXPECT_EQ(two.seen(64), std::byte{0});
  EXPECT_EQ(two.a.next_sent().status, CompletionStatus::kRetryExceeded);
  EXPECT_EQ(two.seen(64), std::byte{0});
}

// A list of small WRITEs, of which one may have another key.
void post_writes(NearCouple& two, std::size_t count, std::size_t wrong) {
  QueuePair::Posting posting(*two.a.pair);
  for (std::size_t i = 0; i < count; ++i) {
    const work::Segment out[] = {two.a.part(i * 100, 60), two.a.part(i * 100 + 60, 40)};
    QpSendRequest request;
    request.id = i;
    request.opcode = CompletionOpcode::kWrite;
    request.work.kind = WorkKind::kWrite;
    request.work.sges = {out, i % 2 + 1};
    request.work.length = i % 2 != 0 ? 100 : 60;
    request.work.address = two.b.address(i * 100);
    request.work.key = i == wrong ? two.b.key() + 1 : two.b.key();
    ASSERT_EQ(posting.post(request), 0);
  }
}

TEST(MemoryLink, AListOfSmallWritesArrivesWhole) {
  NearCouple two;
  constexpr std::size_t kWrites = 21;
  std::ranges::fill(two.a.memory, kMark);
  post_writes(two, kWrites, kWrites);
  for (std::size_t i = 0; i < kWrites; ++i) {
    const std::size_t length = i % 2 != 0 ? 100 : 60;
    for (std::size_t at = 0; at < length; ++at) ASSERT_EQ(two.seen(i * 100 + at), kMark);
    const device::Completion sent = two.a.next_sent();
    EXPECT_EQ(sent.status, CompletionStatus::kSuccess);
    EXPECT_EQ(reinterpret_cast<std::uint64_t>(sent.context), i);
  }
}

TEST(MemoryLink, ARefusedWriteOfAListEndsItThere) {
  NearCouple two;
  constexpr std::size_t kWrites = 12;
  constexpr std::size_t kWrong = 5;
  std::ranges::fill(two.a.memory, kMark);
  post_writes(two, kWrites, kWrong);
  for (std::size_t i = 0; i < kWrites; ++i) {
    const CompletionStatus wanted = i < kWrong    ? CompletionStatus::kSuccess
                                    : i == kWrong ? CompletionStatus::kRemoteAccess
                                                  : CompletionStatus::kFlushed;
    EXPECT_EQ(two.a.next_sent().status, wanted);
    EXPECT_EQ(two.seen(i * 100), i < kWrong ? kMark : std::byte{0});
  }
}

TEST(MemoryLink, RightsOfTheTargetMayChange) {
  NearCouple two;
  QpAttributes none;
  none.access = Access::kRemoteRead;
  ASSERT_TRUE(two.b.to(QpState::kReadyToSend, none, kAttributeAccess).ok());
  std::ranges::fill(two.a.memory, kMark);
  ASSERT_EQ(two.write(8, 64), 0);
  EXPECT_EQ(two.a.next_sent().status, CompletionStatus::kRemoteInvalidRequest);
  EXPECT_EQ(two.seen(64), std::byte{0});
}

TEST(MemoryLink, ASendIsFlushedWhenThePeerDoesNotReadItsBuffer) {
  NearCouple two;
  ASSERT_EQ(two.send(100'000), 0);
  auto guard = memory::AccessGuard::attach(device()->regions_of_users());
  ASSERT_TRUE(guard.ok());
  memory::AccessGuard& peer = *guard.value();
  const RemoteRange entry{0, 1, RegionKey{two.a.pair->qpn()}};
  const memory::Through through{kDomainOfQueuePairs, Access::kNone, two.b.pair->qpn()};
  ASSERT_TRUE(peer.check_and_pin(through, Access::kNone, {&entry, 1}).ok());
  std::thread thread([&] { EXPECT_TRUE(two.a.to(QpState::kError, {}, 0).ok()); });
  for (int i = 0; i < 20; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    EXPECT_TRUE(two.a.sent->empty());
  }
  peer.release();
  thread.join();
  EXPECT_EQ(two.a.next_sent().status, CompletionStatus::kFlushed);
}

// As of packets: their numbers are not those of the connection.
TEST(MemoryLink, AMessageOfAnEarlierConnectionIsNotReceived) {
  NearCouple two;
  ASSERT_EQ(two.send(8, 1), 0);
  for (int i = 0; i < 20; ++i) two.b.port->progress();
  ASSERT_TRUE(two.a.to(QpState::kError, {}, 0).ok());
  EXPECT_EQ(two.a.next_sent().status, CompletionStatus::kFlushed);
  QpAttributes again = End::usual();
  again.send_psn = again.receive_psn = Psn(0x654321);
  ASSERT_TRUE(two.b.to(QpState::kReset, {}, 0).ok());
  two.b.connect(two.a.pair->qpn(), again);
  ASSERT_EQ(two.receive(8), 0);
  ASSERT_TRUE(two.a.to(QpState::kReset, {}, 0).ok());
  for (int i = 0; i < 20; ++i) two.b.port->progress();
  EXPECT_TRUE(two.b.received->empty());
  two.a.connect(two.b.pair->qpn(), again);
  ASSERT_EQ(two.send(4, 2), 0);
  EXPECT_EQ(two.a.next_sent().status, CompletionStatus::kSuccess);
  EXPECT_EQ(two.b.next_received().length, 4u);
}

// Their messages arrive in the polls that the completions name.
TEST(MemoryLink, SendersOfLongMessagesTakeTurns) {
  constexpr std::size_t kLength = 1 << 20;
  End from[] = {End(QpType::kRc, nullptr, 64, true), End(QpType::kRc, nullptr, 64, true)};
  End first(QpType::kRc, nullptr, 64, true);
  End second(QpType::kRc, nullptr, 64, true, first.port);
  End* const to[] = {&first, &second};
  for (int i = 0; i < 2; ++i) {
    from[i].connect(to[i]->pair->qpn());
    to[i]->connect(from[i].pair->qpn());
    const work::Segment in[] = {to[i]->part(0, kLength)};
    for (int k = 0; k < 3; ++k) ASSERT_EQ(to[i]->receive(in), 0);
  }
  {
    const MutexLock no_poll(first.port->lock());
    for (End& each : from) {
      const work::Segment out[] = {each.part(0, kLength)};
      for (int k = 0; k < 3; ++k) ASSERT_EQ(each.send(out), 0);
    }
  }
  const void* polls[2][3];
  for (int i = 0; i < 2; ++i) {
    for (const void*& poll : polls[i]) poll = to[i]->next_received().buffer;
  }
  EXPECT_LT(polls[0][0], polls[0][2]);
  EXPECT_LT(polls[1][0], polls[0][2]);
}

// Any process of this user may write there.
TEST(MemoryLink, AnAnswerToNoRequestLeavesNoneWithoutCompletion) {
  NearCouple two;
  ASSERT_EQ(two.receive(8), 0);
  ASSERT_EQ(two.send(8), 0);
  ASSERT_EQ(two.a.next_sent().status, CompletionStatus::kSuccess);
  const auto file = os::SharedFile::open(shm::mailbox_path(
      device()->directory(),
      os::SocketAddress::of_host(AF_INET, &in6addr_any, roce::port_of(two.b.pair->qpn())),
      link::Service::kQueuePairs));
  ASSERT_TRUE(file.ok());
  const auto words = file.value()->map(shm::slot_at(0), sizeof(shm::SlotHeader));
  ASSERT_TRUE(words.ok());
  words.value().at<shm::SlotHeader>(0)->answer =
      shm::answer_word(7, answer_of(AnswerKind::kOperational));
  // A message makes `a` look at the answers.
  const work::Segment in[] = {two.a.part(64, 8)};
  const work::Segment out[] = {two.b.part(0, 8)};
  ASSERT_EQ(two.a.receive(in), 0);
  ASSERT_EQ(two.b.send(out), 0);
  EXPECT_EQ(two.a.next_received().status, CompletionStatus::kSuccess);
  ASSERT_EQ(two.write(8, 64), 0);
  two.a.next_sent();
}

}  // namespace
}  // namespace weft::queue::testing
