// SPDX-License-Identifier: BSD-2-Clause
// Is what an endpoint does without packets written down as the packets that it would have been?
#include "capture/recorder.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <deque>
#include <functional>

#include "link/membership.h"
#include "os/loopback_support.h"
#include "rdm/message.h"
#include "test_support.h"
#include "wire/cm_message.h"

namespace weft::capture {
namespace {

using link::Outcome;
using testing::Bytes;
using testing::Seen;
using wire::Operation;

// A flow whose requests end as the test says.
struct FakeFlow final : link::Flow {
  Outcome outcome;
  std::deque<void*> cookies;
  std::function<void()> meanwhile;
  Outcome answer(void* cookie) {
    if (meanwhile) meanwhile();
    if (outcome.state == Outcome::State::kPending) cookies.push_back(cookie);
    return outcome;
  }
  Outcome send(const link::SendRequest& request) override { return answer(request.cookie); }
  Outcome access(const link::AccessRequest& request) override { return answer(request.cookie); }
  Outcome atomic(const link::AtomicRequest& request) override { return answer(request.cookie); }
  bool busy() const override { return !cookies.empty(); }
  bool ready() const override { return !cookies.empty(); }
  void progress(link::FlowSink& sink) override {
    for (; !cookies.empty(); cookies.pop_front()) sink.ended(cookies.front(), 0, 0);
  }
  link::PeerState check_peer(link::FlowSink&) override { return link::PeerState::kAlive; }
  void give_up(link::FlowSink&) override {}
  bool cancel(void* cookie, link::FlowSink& sink) override {
    if (std::erase(cookies, cookie) == 0) return false;
    sink.ended(cookie, ECANCELED, 0);
    return true;
  }
  int process() const override { return 7; }
  void set_asleep(bool) override {}
};

// An inbox in which things arrive when the test says so.
struct FakeInbox final : link::Inbox {
  std::vector<link::Arrival> waiting;
  os::SocketAddress peer = os::address_of("127.0.0.1", 40002);
  unsigned poll(link::InboxSink& sink) override {
    sink.source_opened(3, peer);
    for (const link::Arrival& each : waiting) sink.arrived(each);
    return static_cast<unsigned>(waiting.size());
  }
  bool accept(link::InboxSink& sink, const link::Offer&, std::span<const LocalRange> pieces,
              std::uint64_t length, void* cookie) override {
    std::memset(pieces[0].base, 0x77, length);
    sink.received(cookie, 0);
    return true;
  }
  void acknowledge(const link::Offer&) override {}
  void refuse(link::InboxSink&, std::uint32_t) override {}
  void check_sources(link::InboxSink& sink) override { sink.source_closed(3, false); }
  bool fall_asleep() override { return true; }
  void wake_up() override {}
};

// A link whose flows and inbox are those.
struct FakeLink final : link::PortLink {
  FakeFlow* flow = nullptr;  // the last one
  FakeInbox arrivals;
  link::Inbox& inbox() override { return arrivals; }
  Result<std::unique_ptr<link::Flow>> connect(const os::SocketAddress&) override {
    auto opened = std::make_unique<FakeFlow>();
    flow = opened.get();
    return std::unique_ptr<link::Flow>(std::move(opened));
  }
  Result<std::unique_ptr<link::Flow>> connect_group(const os::SocketAddress& group) override {
    return connect(group);
  }
};

struct Ended final : link::FlowSink {
  std::vector<void*> cookies;
  void ended(void* cookie, int, int) override { cookies.push_back(cookie); }
};

struct Heard final : link::InboxSink {
  std::vector<std::uint64_t> tags;
  std::vector<void*> taken;
  void source_opened(std::uint32_t, const os::SocketAddress&) override {}
  void source_closed(std::uint32_t, bool) override {}
  void arrived(const link::Arrival& arrival) override { tags.push_back(arrival.tag); }
  void received(void* cookie, int) override { taken.push_back(cookie); }
};

class RecorderTest : public ::testing::Test {
 protected:
  RecorderTest() {
    capture_ = Capture::open({directory_.file("f"), kDefaultLimit}).value();
    auto link = std::make_unique<FakeLink>();
    link_ = link.get();
    recorder_ = std::make_unique<Recorder>(
        capture_, RecorderOptions{os::address_of("127.0.0.1", 40001), 16384}, std::move(link));
    flow_ = std::move(recorder_->connect(os::address_of("127.0.0.1", 40002))).value();
    fake_ = link_->flow;
  }
  // Everything so far. Each packet is sound, and the requests of each direction have numbers in a
  // row.
  std::vector<Seen> packets() {
    capture_->flush();
    auto all = testing::packets_in(capture_->path());
    for (const Seen& each : all) EXPECT_TRUE(each.sound);
    return all;
  }
  // The operations of reliable datagrams among them.
  std::vector<Operation> operations() {
    std::vector<Operation> found;
    for (const Seen& each : packets()) {
      if (each.transport() == wire::Transport::kReliableDatagram) found.push_back(each.operation());
    }
    return found;
  }
  Seen find(Operation operation) {
    for (Seen& each : packets()) {
      if (each.transport() == wire::Transport::kReliableDatagram && each.operation() == operation) {
        wire::parse(each.datagram, each.packet);
        return each;
      }
    }
    ADD_FAILURE() << "no packet of operation " << static_cast<int>(operation);
    return {};
  }
  static bool is_send(const Seen& seen) {
    return seen.transport() == wire::Transport::kReliableDatagram &&
           seen.operation() == Operation::kSendOnly;
  }
  // The messages in one packet of reliable datagrams each.
  std::vector<rdm::MessageHeader> messages() {
    std::vector<rdm::MessageHeader> found;
    for (const Seen& each : packets()) {
      if (is_send(each)) found.push_back(header_of(each));
    }
    return found;
  }
  static rdm::MessageHeader header_of(const Seen& seen) {
    return rdm::read_header(seen.datagram.data() + wire::header_bytes(seen.packet));
  }
  link::SendRequest message(std::size_t length) {
    bytes_.assign(length, std::byte{0x5A});
    piece_ = {bytes_.data(), length};
    link::SendRequest request;
    request.operation = link::MessageOperation::kTagged;
    request.tag = 0x1234;
    request.pieces = {&piece_, 1};
    request.length = length;
    request.cookie = &bytes_;
    return request;
  }
  link::AccessRequest access(bool write, std::size_t length) {
    message(length);
    remote_ = {0x10000, length, RegionKey{9}};
    link::AccessRequest request;
    request.write = write;
    request.local = {&piece_, 1};
    request.remote = {&remote_, 1};
    request.length = length;
    return request;
  }

  const testing::Directory directory_;
  std::shared_ptr<Capture> capture_;
  std::unique_ptr<Recorder> recorder_;
  FakeLink* link_ = nullptr;
  FakeFlow* fake_ = nullptr;
  std::unique_ptr<link::Flow> flow_;
  Bytes bytes_;
  LocalRange piece_;
  RemoteRange remote_;
};

TEST_F(RecorderTest, AMessageIsAConnectionThenASendAndItsAcknowledgement) {
  flow_->send(message(10000));
  const auto all = packets();
  ASSERT_EQ(all.size(), 6u);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(all[i].packet.destination, wire::kCmQpn);  // REQ, REP, RTU
  EXPECT_EQ(operations(),
            (std::vector{Operation::kSendFirst, Operation::kSendLast, Operation::kAcknowledge}));
  EXPECT_EQ(all[3].route.source_port, 40001);
  EXPECT_EQ(all[3].route.destination_port, 40002);
  EXPECT_EQ(all[5].route.source_port, 40002);
  EXPECT_EQ(all[4].packet.psn, all[3].packet.psn.after(1));
  EXPECT_EQ(header_of(all[3]).tag, 0x1234u);
  EXPECT_EQ(header_of(all[3]).length, 10000u);
  EXPECT_EQ(all[3].datagram[all[3].datagram.size() - 5], std::byte{0x5A});
  flow_->send(message(10));
  EXPECT_EQ(packets()[6].packet.psn, all[4].packet.psn.after(1));
}

TEST_F(RecorderTest, OperationsThatAreNotTakenOrFailAreNotWrittenDown) {
  fake_->outcome = Outcome::again();
  EXPECT_EQ(flow_->send(message(10)).state, Outcome::State::kAgain);
  fake_->outcome = Outcome::failed(ECONNRESET);
  EXPECT_EQ(flow_->access(access(true, 10)).error, ECONNRESET);
  EXPECT_TRUE(packets().empty());
}

TEST_F(RecorderTest, ALargeMessageIsOfferedThenWantedThenWritten) {
  fake_->outcome = Outcome::pending();
  Ended ended;
  flow_->send(message(300'000));
  EXPECT_EQ(operations(), (std::vector{Operation::kSendOnly, Operation::kAcknowledge}));
  flow_->progress(ended);
  EXPECT_EQ(ended.cookies, std::vector<void*>{&bytes_});
  std::size_t written = 0;
  for (const Seen& each : packets()) {
    if (each.operation() < Operation::kWriteFirst || each.operation() > Operation::kWriteLast) {
      continue;
    }
    EXPECT_EQ(each.route.source_port, 40001);
    written += each.datagram.size() - wire::header_bytes(each.packet) - wire::kIcrcBytes;
  }
  EXPECT_EQ(written, 300'000u);
  EXPECT_EQ(find(Operation::kWriteFirst).packet.reth.key,
            rdm::receive_key(header_of(find(Operation::kSendOnly)).exchange));
  EXPECT_EQ(operations().back(), Operation::kAcknowledge);
}

TEST_F(RecorderTest, AnAccessIsAWriteOrARead) {
  flow_->access(access(true, 20000));
  EXPECT_EQ(operations(), (std::vector{Operation::kWriteFirst, Operation::kWriteMiddle,
                                       Operation::kWriteLast, Operation::kAcknowledge}));
  EXPECT_EQ(find(Operation::kWriteFirst).packet.reth.address, 0x10000u);
  EXPECT_EQ(find(Operation::kWriteFirst).packet.reth.length, 20000u);
  flow_->access(access(false, 100));
  EXPECT_EQ(find(Operation::kReadResponseOnly).datagram[wire::kBthBytes + 8], std::byte{0x5A});
}

TEST_F(RecorderTest, AnAccessToSeveralRangesNamesThemBeforehand) {
  auto request = access(true, 100);
  const RemoteRange ranges[] = {{0x10000, 60, RegionKey{9}},
                                {0x20000, 40, RegionKey{0x1'0000'0000}}};
  request.remote = ranges;
  flow_->access(request);
  const Seen named = find(Operation::kSendOnly);
  EXPECT_EQ(header_of(named).kind, rdm::MessageKind::kRangeBegin);
  EXPECT_EQ(header_of(named).tag, 2u);
  std::vector<rdm::MessageKind> kinds;
  std::vector<std::uint32_t> keys;
  for (const Seen& each : packets()) {
    if (each.transport() != wire::Transport::kReliableDatagram) continue;
    if (each.operation() == Operation::kSendOnly) kinds.push_back(header_of(each).kind);
    if (each.operation() == Operation::kWriteOnly) keys.push_back(each.packet.reth.key);
  }
  EXPECT_EQ(kinds, (std::vector{rdm::MessageKind::kRangeBegin, rdm::MessageKind::kAlias,
                                rdm::MessageKind::kRangeEnd}));
  EXPECT_EQ(keys, (std::vector<std::uint32_t>{9, rdm::alias_key(0)}));
}

TEST_F(RecorderTest, AWriteWithDataIsAnnouncedAndEndsWithAnImmediate) {
  auto request = access(true, 100);
  request.has_data = true;
  request.data = 0xABCD'EF01'2345'6789;
  flow_->access(request);
  EXPECT_EQ(header_of(find(Operation::kSendOnly)).data, request.data);
  find(Operation::kWriteOnlyImmediate);
}

TEST_F(RecorderTest, ARefusedAccessIsANakAndTheNextOneGoesOn) {
  fake_->outcome = Outcome::failed(EACCES, 2);
  flow_->access(access(true, 20000));
  EXPECT_EQ(find(Operation::kAcknowledge).packet.syndrome, 0x72);
  fake_->outcome = Outcome::done();
  flow_->access(access(true, 10));
  const auto found = operations();
  EXPECT_EQ(found[found.size() - 2], Operation::kWriteOnly);
  EXPECT_EQ(packets().back().packet.syndrome, 0x1F);
  find(Operation::kResync);
}

TEST_F(RecorderTest, AtomicOperationsAreMessagesThatAreAnswered) {
  message(8);
  remote_ = {0x10000, 8, RegionKey{9}};
  std::uint64_t operand = 5;
  std::uint64_t result = 37;
  const LocalRange operands{&operand, sizeof operand};
  const LocalRange results{&result, sizeof result};
  link::AtomicRequest request;
  request.action = {AtomicForm::kFetch, AtomicOp::kSum, AtomicType::kUint64};
  request.operand = {&operands, 1};
  request.result = {&results, 1};
  request.remote = {&remote_, 1};
  request.length = 8;
  for (const AtomicOp op : {AtomicOp::kSum, AtomicOp::kMin}) {
    std::size_t before = packets().size();
    request.action.op = op;
    flow_->atomic(request);
    std::vector<Seen> sends;
    for (const Seen& each : packets()) {
      if (before != 0) {
        --before;
      } else if (is_send(each)) {
        sends.push_back(each);
      }
    }
    ASSERT_EQ(sends.size(), 2u);
    EXPECT_EQ(header_of(sends[0]).kind, rdm::MessageKind::kAtomic);
    EXPECT_EQ(header_of(sends[0]).action.op, op);
    EXPECT_EQ(
        sends[0].datagram[wire::header_bytes(sends[0].packet) + rdm::kMessageHeader + rdm::kRange],
        std::byte{5});
    EXPECT_EQ(header_of(sends[1]).kind, rdm::MessageKind::kResult);
    EXPECT_EQ(sends[1].route.source_port, 40002);
    EXPECT_EQ(sends[1].datagram[wire::header_bytes(sends[1].packet) + rdm::kMessageHeader],
              std::byte{37});
  }
}

TEST_F(RecorderTest, ARefusedAtomicOperationIsAnsweredByTheBrokenRule) {
  message(8);
  remote_ = {0x10000, 8, RegionKey{9}};
  std::uint64_t operand = 5;
  const LocalRange operands{&operand, sizeof operand};
  link::AtomicRequest request;
  request.action = {AtomicForm::kBase, AtomicOp::kSum, AtomicType::kUint64};
  request.operand = {&operands, 1};
  request.remote = {&remote_, 1};
  request.length = 8;
  fake_->outcome = Outcome::failed(EACCES, 5);
  EXPECT_EQ(flow_->atomic(request).error, EACCES);
  const auto all = messages();
  ASSERT_EQ(all.size(), 2u);
  EXPECT_EQ(all[1].kind, rdm::MessageKind::kResult);
  EXPECT_EQ(all[1].tag, std::uint64_t{EACCES});
  EXPECT_EQ(all[1].length, 5u);
}

TEST_F(RecorderTest, AReadHasTheBytesThatItFound) {
  auto request = access(false, 20000);
  std::byte* const moving = bytes_.data();
  fake_->meanwhile = [&] { moving[19999] = std::byte{0x11}; };
  flow_->access(request);
  EXPECT_EQ(find(Operation::kReadResponseFirst).datagram[wire::kBthBytes + 8], std::byte{0x5A});
  const Bytes last = find(Operation::kReadResponseLast).datagram;
  EXPECT_EQ(last[last.size() - wire::kIcrcBytes - 1], std::byte{0x11});
  EXPECT_EQ(bytes_[19999], std::byte{0x11});
}

TEST_F(RecorderTest, MessagesThatAreNeverTakenStopNoOthers) {
  fake_->outcome = Outcome::pending();
  for (unsigned i = 0; i < 1500; ++i) flow_->send(message(20'000));
  fake_->outcome = Outcome::done();
  flow_->send(message(10));
  const auto all = messages();
  EXPECT_EQ(all.size(), 1501u);
  EXPECT_EQ(all.back().kind, rdm::MessageKind::kEager);
}

TEST_F(RecorderTest, AWithdrawnMessageIsWithdrawnFromThePeer) {
  fake_->outcome = Outcome::pending();
  Ended ended;
  flow_->send(message(20'000));
  EXPECT_TRUE(flow_->cancel(&bytes_, ended));
  const auto all = messages();
  ASSERT_EQ(all.size(), 2u);
  EXPECT_EQ(all[0].kind, rdm::MessageKind::kRts);
  EXPECT_EQ(all[1].kind, rdm::MessageKind::kWithdrawn);
  EXPECT_EQ(all[1].exchange, all[0].exchange);
}

TEST_F(RecorderTest, AMessageThatIsDeliveredIsAcknowledged) {
  fake_->outcome = Outcome::pending();
  auto request = message(10);
  request.until_delivered = true;
  Ended ended;
  flow_->send(request);
  EXPECT_EQ(messages().size(), 1u);
  flow_->progress(ended);
  const auto all = messages();
  ASSERT_EQ(all.size(), 2u);
  EXPECT_EQ(all[1].kind, rdm::MessageKind::kTaken);
  EXPECT_EQ(all[1].exchange, all[0].exchange);
}

TEST_F(RecorderTest, TheEndOfAFlowIsADisconnect) {
  flow_->send(message(10));
  flow_.reset();
  const auto all = packets();
  for (const std::size_t from_end : {2u, 1u}) {
    EXPECT_EQ(all[all.size() - from_end].packet.destination, wire::kCmQpn);
  }
}

TEST_F(RecorderTest, AnArrivalIsRecordedAsASendOfThePeer) {
  Heard heard;
  link::Inbox& inbox = recorder_->inbox();
  const Bytes payload(40, std::byte{0x33});
  link::Arrival arrival;
  arrival.source = 3;
  arrival.tag = 77;
  arrival.length = payload.size();
  arrival.payload = payload.data();
  link_->arrivals.waiting = {arrival};
  EXPECT_EQ(inbox.poll(heard), 1u);
  EXPECT_EQ(heard.tags, std::vector<std::uint64_t>{77});
  const Seen sent = find(Operation::kSendOnly);
  EXPECT_EQ(sent.route.source_port, 40002);
  EXPECT_EQ(header_of(sent).tag, 77u);
  EXPECT_EQ(header_of(sent).kind, rdm::MessageKind::kEager);
}

TEST_F(RecorderTest, AnOfferThatIsAcceptedIsWrittenToThisSide) {
  Heard heard;
  link::Inbox& inbox = recorder_->inbox();
  link::Arrival arrival;
  arrival.source = 3;
  arrival.length = 20'000;
  arrival.offer = {3, 55};
  link_->arrivals.waiting = {arrival};
  inbox.poll(heard);
  Bytes room(20'000);
  const LocalRange piece{room.data(), room.size()};
  inbox.accept(heard, arrival.offer, {&piece, 1}, room.size(), &room);
  EXPECT_EQ(heard.taken, std::vector<void*>{&room});
  const Seen written = find(Operation::kWriteFirst);
  const auto said = messages();
  ASSERT_EQ(said.size(), 2u);
  EXPECT_EQ(said[0].kind, rdm::MessageKind::kRts);
  EXPECT_EQ(said[1].kind, rdm::MessageKind::kCts);
  EXPECT_EQ(said[1].exchange, said[0].exchange);
  EXPECT_EQ(written.packet.reth.key, rdm::receive_key(static_cast<std::uint32_t>(said[1].tag)));
  EXPECT_EQ(written.route.source_port, 40002);
  const Bytes last = find(Operation::kWriteLast).datagram;
  EXPECT_EQ(last[last.size() - wire::kIcrcBytes - 1], std::byte{0x77});
}

TEST_F(RecorderTest, AnAccessOfAPeerIsSeenByItsData) {
  Heard heard;
  link::Inbox& inbox = recorder_->inbox();
  link::Arrival arrival;
  arrival.operation = link::MessageOperation::kWriteData;
  arrival.source = 3;
  arrival.has_data = true;
  arrival.tag = 5000;
  arrival.data = 0xABCD'EF01'2345'6789;
  link_->arrivals.waiting = {arrival};
  inbox.poll(heard);
  const auto said = messages();
  ASSERT_EQ(said.size(), 1u);
  EXPECT_EQ(said[0].kind, rdm::MessageKind::kWriteImmInfo);
  EXPECT_EQ(said[0].data, arrival.data);
  EXPECT_EQ(said[0].length, 5000u);
  EXPECT_EQ(find(Operation::kWriteOnlyImmediate).packet.reth.length, 0u);
}

TEST_F(RecorderTest, DatagramsAreUnreliableToOneOrToAGroup) {
  auto request = message(99);
  request.operation = link::MessageOperation::kDatagram;
  request.has_data = true;
  request.data = 42;
  flow_->send(request);
  flow_ = std::move(recorder_->connect_group(os::address_of("239.1.2.3", 5000))).value();
  flow_->send(request);
  const auto all = packets();
  ASSERT_EQ(all.size(), 2u);
  for (const Seen& each : all) {
    EXPECT_EQ(each.transport(), wire::Transport::kUnreliableDatagram);
    EXPECT_EQ(each.packet.immediate, 42u);
    EXPECT_EQ(each.datagram.size(), wire::header_bytes(each.packet) + 100 + wire::kIcrcBytes);
  }
  EXPECT_EQ(all[0].packet.destination, 40002u << 8 | 1);
  EXPECT_EQ(all[1].packet.destination, wire::kMulticastQpn);
  EXPECT_EQ(all[1].route.destination[0], std::byte{239});
}

}  // namespace
}  // namespace weft::capture
