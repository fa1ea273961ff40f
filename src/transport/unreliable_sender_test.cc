// SPDX-License-Identifier: BSD-2-Clause
// Into which packets is unacknowledged work cut, and when does it complete?
#include "transport/unreliable_sender.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "plain_memory.h"

namespace weft::transport {
namespace {

using Bytes = std::vector<std::byte>;
using wire::Operation;
using work::CompletionStatus;
using work::Ended;
using work::Segment;
using work::Work;
using work::WorkKind;
using work::WorkSink;

constexpr std::size_t kPathMtu = 256;

Bytes numbered(std::size_t length) {
  Bytes bytes(length);
  for (std::size_t i = 0; i < length; ++i) bytes[i] = static_cast<std::byte>(i * 7 + 1);
  return bytes;
}

// A packet as a receiver would read it.
struct Sent {
  Bytes datagram;
  wire::Packet packet;
};

class UnreliableSending : public ::testing::Test, public WorkSink {
 public:
  UnreliableSending() {
    settings_.kind = wire::Transport::kUnreliableConnection;
    settings_.path_mtu = kPathMtu;
    settings_.destination = 0x123456;
    settings_.first_sent = Psn(0xFF'FFFE);
  }

  UnreliableSender& make() { return sender_.emplace(settings_, *this, memory_); }

  // Work whose cookie is `number`.
  Work work(WorkKind kind, const Segment* sges, std::size_t count, std::uintptr_t number) {
    Work work;
    work.kind = kind;
    work.sges = {sges, count};
    for (const Segment& sge : work.sges) work.length += sge.length;
    work.address = 0x7000;
    work.key = 0x99;
    work.cookie = reinterpret_cast<void*>(number);
    return work;
  }

  void ended(const Ended& work) override {
    ends_.push_back({reinterpret_cast<std::uintptr_t>(work.cookie), work.status});
  }

  Sent next() {
    Sent sent;
    sent.datagram.resize(wire::kMaxHeaderBytes + kPathMtu);
    sent.datagram.resize(sender_->next(sent.datagram) + wire::kIcrcBytes);
    EXPECT_EQ(wire::parse(sent.datagram, sent.packet), wire::Malformed::kNone);
    return sent;
  }
  Operation operation(const Sent& sent) {
    EXPECT_EQ(wire::transport_of(sent.packet.opcode), settings_.kind);
    return wire::operation_of(sent.packet.opcode);
  }
  static Bytes payload(const Sent& sent) {
    return {sent.packet.payload.begin(), sent.packet.payload.end()};
  }

 protected:
  struct End {
    std::uintptr_t number;
    CompletionStatus status;
    friend bool operator==(const End&, const End&) = default;
  };
  Settings settings_;
  testing::PlainMemory memory_;
  std::optional<UnreliableSender> sender_;
  std::vector<End> ends_;
};

TEST_F(UnreliableSending, SendsAShortMessageInOnePacketAndIsDone) {
  UnreliableSender& sender = make();
  Bytes bytes = numbered(5);
  const Segment sge{bytes.data(), bytes.size()};
  EXPECT_FALSE(sender.busy());
  sender.post(work(WorkKind::kSend, &sge, 1, 1));
  EXPECT_TRUE(sender.busy());
  EXPECT_TRUE(ends_.empty());
  const Sent sent = next();
  EXPECT_EQ(operation(sent), Operation::kSendOnly);
  EXPECT_EQ(payload(sent), bytes);
  EXPECT_EQ(sent.packet.destination, 0x123456U);
  EXPECT_EQ(sent.packet.psn, Psn(0xFF'FFFE));
  EXPECT_FALSE(sent.packet.ack_request);
  EXPECT_EQ(sent.datagram.size() % 4, 0U);
  EXPECT_EQ(ends_, (std::vector<End>{{1, CompletionStatus::kSuccess}}));
  EXPECT_FALSE(sender.busy());
  Bytes out(wire::kMaxHeaderBytes + kPathMtu);
  EXPECT_EQ(sender.next(out), 0U);
}

TEST_F(UnreliableSending, CutsALongMessageAtThePathMtuAndEndsItWithItsLastPacket) {
  UnreliableSender& sender = make();
  Bytes bytes = numbered(2 * kPathMtu + 3);
  const Segment sges[] = {{bytes.data(), 100}, {bytes.data() + 100, bytes.size() - 100}};
  Work some = work(WorkKind::kSend, sges, 2, 1);
  some.has_immediate = true;
  some.immediate = 0xABCD;
  some.solicited = true;
  sender.post(some);
  Bytes all;
  const Operation operations[] = {Operation::kSendFirst, Operation::kSendMiddle,
                                  Operation::kSendLastImmediate};
  for (std::uint32_t i = 0; i < 3; ++i) {
    EXPECT_TRUE(ends_.empty());
    const Sent sent = next();
    EXPECT_EQ(operation(sent), operations[i]);
    EXPECT_EQ(sent.packet.psn, Psn(0xFF'FFFE + i)) << "which wraps around";
    EXPECT_EQ(sent.packet.solicited, i == 2);
    EXPECT_EQ(sent.packet.immediate, i == 2 ? 0xABCDU : 0U);
    const Bytes part = payload(sent);
    all.insert(all.end(), part.begin(), part.end());
  }
  EXPECT_EQ(all, bytes);
  EXPECT_EQ(ends_, (std::vector<End>{{1, CompletionStatus::kSuccess}}));
}

TEST_F(UnreliableSending, NamesTheMemoryOfAWriteInItsFirstPacketOnly) {
  UnreliableSender& sender = make();
  Bytes bytes = numbered(kPathMtu + 1);
  const Segment sge{bytes.data(), bytes.size()};
  sender.post(work(WorkKind::kWrite, &sge, 1, 1));
  Work empty = work(WorkKind::kWrite, nullptr, 0, 2);
  empty.has_immediate = true;
  empty.immediate = 7;
  sender.post(empty);
  Sent sent = next();
  EXPECT_EQ(operation(sent), Operation::kWriteFirst);
  EXPECT_EQ(sent.packet.reth.address, 0x7000U);
  EXPECT_EQ(sent.packet.reth.key, 0x99U);
  EXPECT_EQ(sent.packet.reth.length, kPathMtu + 1);
  sent = next();
  EXPECT_EQ(operation(sent), Operation::kWriteLast);
  EXPECT_EQ(payload(sent), Bytes(1, bytes.back()));
  sent = next();
  EXPECT_EQ(operation(sent), Operation::kWriteOnlyImmediate);
  EXPECT_EQ(sent.packet.reth.length, 0U);
  EXPECT_EQ(sent.packet.immediate, 7U);
  EXPECT_EQ(ends_,
            (std::vector<End>{{1, CompletionStatus::kSuccess}, {2, CompletionStatus::kSuccess}}));
}

TEST_F(UnreliableSending, RefusesReadsAndAtomicOperationsInTheirTurn) {
  UnreliableSender& sender = make();
  Bytes bytes = numbered(8);
  const Segment sge{bytes.data(), bytes.size()};
  sender.post(work(WorkKind::kRead, &sge, 1, 1));
  EXPECT_EQ(ends_, (std::vector<End>{{1, CompletionStatus::kLocalOperation}}));
  sender.post(work(WorkKind::kSend, &sge, 1, 2));
  sender.post(work(WorkKind::kCompareSwap, nullptr, 0, 3));
  sender.post(work(WorkKind::kFetchAdd, nullptr, 0, 4));
  Work invalidation = work(WorkKind::kSend, &sge, 1, 5);
  invalidation.invalidates = true;
  sender.post(invalidation);
  Work endless = work(WorkKind::kWrite, &sge, 1, 6);
  endless.length = work::kMaxMessage + 1;
  sender.post(endless);
  EXPECT_EQ(ends_.size(), 1U) << "the one before them has not ended";
  EXPECT_EQ(operation(next()), Operation::kSendOnly);
  EXPECT_EQ(ends_, (std::vector<End>{{1, CompletionStatus::kLocalOperation},
                                     {2, CompletionStatus::kSuccess},
                                     {3, CompletionStatus::kLocalOperation},
                                     {4, CompletionStatus::kLocalOperation},
                                     {5, CompletionStatus::kLocalOperation},
                                     {6, CompletionStatus::kLocalLength}}));
  EXPECT_FALSE(sender.busy()) << "nothing of them is sent";
}

TEST_F(UnreliableSending, WorkWithAnSgeThatIsGoneEndsAloneAndHasNoPacket) {
  UnreliableSender& sender = make();
  Bytes bytes = numbered(2 * kPathMtu);
  const Segment sge{bytes.data(), bytes.size()};
  memory_.gathers = 1;
  sender.post(work(WorkKind::kSend, &sge, 1, 1));
  sender.post(work(WorkKind::kSend, &sge, 1, 2));
  sender.post(work(WorkKind::kSend, nullptr, 0, 3));
  EXPECT_EQ(operation(next()), Operation::kSendFirst);
  const Sent last = next();
  EXPECT_EQ(operation(last), Operation::kSendOnly);
  EXPECT_EQ(last.packet.psn, settings_.first_sent.after(1));
  EXPECT_EQ(ends_, (std::vector<End>{{1, CompletionStatus::kLocalProtection},
                                     {2, CompletionStatus::kLocalProtection},
                                     {3, CompletionStatus::kSuccess}}));
}

TEST_F(UnreliableSending, MayBeGivenMoreWorkWhenACompletionIsReported) {
  struct Again : WorkSink {
    void ended(const Ended&) override {
      if (left-- != 0) sender->post(Work{});
    }
    UnreliableSender* sender = nullptr;
    int left = 2;
  } again;
  settings_.kind = wire::Transport::kUnreliableConnection;
  UnreliableSender sender(settings_, again, memory_);
  again.sender = &sender;
  sender.post(Work{});
  Bytes out(wire::kMaxHeaderBytes + kPathMtu);
  for (int i = 0; i < 3; ++i) EXPECT_NE(sender.next(out), 0U);
  EXPECT_FALSE(sender.busy());
}

TEST_F(UnreliableSending, FailsTheFirstWorkAndFlushesTheRest) {
  UnreliableSender& sender = make();
  Bytes bytes = numbered(2 * kPathMtu);
  const Segment sge{bytes.data(), bytes.size()};
  sender.post(work(WorkKind::kSend, &sge, 1, 1));
  sender.post(work(WorkKind::kRead, &sge, 1, 2));
  sender.post(work(WorkKind::kSend, &sge, 1, 3));
  next();
  sender.fail(CompletionStatus::kLocalOperation);
  sender.post(work(WorkKind::kSend, &sge, 1, 4));
  EXPECT_EQ(ends_, (std::vector<End>{{1, CompletionStatus::kLocalOperation},
                                     {2, CompletionStatus::kLocalOperation},
                                     {3, CompletionStatus::kFlushed},
                                     {4, CompletionStatus::kFlushed}}));
  EXPECT_FALSE(sender.busy());
  EXPECT_TRUE(sender.failed());
}

}  // namespace
}  // namespace weft::transport
