// SPDX-License-Identifier: BSD-2-Clause
// Is each thing that an endpoint does without packets written down as a record?
#include "capture/recorder.h"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <deque>
#include <functional>

#include "capture/record.h"
#include "link/membership.h"
#include "os/loopback_support.h"
#include "os/user_memory.h"
#include "test_support.h"

namespace weft::capture {
namespace {

using link::Outcome;
using testing::Bytes;

// A record as it is in the file (docs/formats/capture.md).
struct Told {
  RecordKind kind{};
  std::uint8_t operation = 0, type = 0, form = 0, flags = 0, outcome = 0;
  std::uint16_t reason = 0;
  std::uint32_t ranges = 0;
  std::uint64_t tag = 0, data = 0, length = 0, rendezvous_id = 0, key = 0, address = 0;
  wire::Route route;
  Bytes bytes;
};

Told told(const testing::Seen& seen) {
  const std::byte* at = seen.datagram.data();
  Told found{.kind = static_cast<RecordKind>(at[4]),
             .operation = wire::load<std::uint8_t>(at + 5),
             .type = wire::load<std::uint8_t>(at + 6),
             .form = wire::load<std::uint8_t>(at + 7),
             .flags = wire::load<std::uint8_t>(at + 8),
             .outcome = wire::load<std::uint8_t>(at + 9),
             .reason = wire::load<std::uint16_t>(at + 10),
             .ranges = wire::load<std::uint32_t>(at + 12),
             .tag = wire::load<std::uint64_t>(at + 16),
             .data = wire::load<std::uint64_t>(at + 24),
             .length = wire::load<std::uint64_t>(at + 32),
             .rendezvous_id = wire::load<std::uint64_t>(at + 40),
             .key = wire::load<std::uint64_t>(at + 48),
             .address = wire::load<std::uint64_t>(at + 56),
             .route = seen.route,
             .bytes = {}};
  found.bytes.assign(seen.datagram.begin() + kRecordHeader, seen.datagram.end());
  return found;
}

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
  std::vector<link::Offer> withdrawn;
  os::SocketAddress peer = os::address_of("127.0.0.1", 40002);
  unsigned poll(link::InboxSink& sink) override {
    sink.source_opened(3, peer);
    for (const link::Arrival& each : waiting) sink.arrived(each);
    for (const link::Offer& each : withdrawn) sink.withdrawn(each);
    return static_cast<unsigned>(waiting.size());
  }
  bool accept(link::InboxSink& sink, const link::Offer&, std::span<const LocalRange> sges,
              std::uint64_t length, void* cookie) override {
    std::memset(sges[0].base, 0x77, length);
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
  Result<link::Membership> join(const os::SocketAddress&) override { return link::Membership(); }
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
  std::vector<std::uint32_t> withdrawals;
  void source_opened(std::uint32_t, const os::SocketAddress&) override {}
  void source_closed(std::uint32_t, bool) override {}
  void arrived(const link::Arrival& arrival) override { tags.push_back(arrival.tag); }
  void received(void* cookie, int) override { taken.push_back(cookie); }
  void withdrawn(const link::Offer& offer) override { withdrawals.push_back(offer.rendezvous_id); }
};

class RecorderTest : public ::testing::Test {
 protected:
  RecorderTest() {
    os::handle_user_faults();
    capture_ = Capture::open({directory_.file("f"), kDefaultLimit}).value();
    auto link = std::make_unique<FakeLink>();
    link_ = link.get();
    recorder_ =
        std::make_unique<Recorder>(capture_, os::address_of("127.0.0.1", 40001), std::move(link));
    flow_ = std::move(recorder_->connect(os::address_of("127.0.0.1", 40002))).value();
    fake_ = link_->flow;
  }
  // Everything so far. No parser of packets takes one of them.
  std::vector<Told> records() {
    capture_->flush();
    std::vector<Told> found;
    for (const testing::Seen& each : testing::packets_in(capture_->path())) {
      wire::Packet packet;
      EXPECT_EQ(wire::parse(each.datagram, packet), wire::Malformed::kVersion);
      EXPECT_EQ(std::memcmp(each.datagram.data(), kRecordMagic.data(), kRecordMagic.size()), 0);
      found.push_back(told(each));
    }
    return found;
  }
  // The last one, if there are so many.
  Told last(std::size_t count) {
    const std::vector<Told> all = records();
    EXPECT_EQ(all.size(), count);
    return all.empty() ? Told() : all.back();
  }
  link::SendRequest message(std::size_t length) {
    bytes_.assign(length, std::byte{0x5A});
    sge_ = {bytes_.data(), length};
    link::SendRequest request;
    request.operation = link::MessageOperation::kTagged;
    request.tag = 0x1234;
    request.sges = {&sge_, 1};
    request.length = length;
    request.cookie = &bytes_;
    return request;
  }
  link::AccessRequest access(bool write, std::size_t length) {
    message(length);
    remote_ = {0x10000, length, RegionKey{9}};
    link::AccessRequest request;
    request.write = write;
    request.local = {&sge_, 1};
    request.remote = {&remote_, 1};
    request.length = length;
    return request;
  }
  // An inbox polls, and this arrives from the peer.
  void arrive(link::Arrival arrival) {
    arrival.source = 3;
    link_->arrivals.waiting = {arrival};
    EXPECT_EQ(recorder_->inbox().poll(heard_), 1u);
  }
  std::uint64_t cookie() const { return reinterpret_cast<std::uintptr_t>(&bytes_); }

  const testing::Directory directory_;
  std::shared_ptr<Capture> capture_;
  std::unique_ptr<Recorder> recorder_;
  FakeLink* link_ = nullptr;
  FakeFlow* fake_ = nullptr;
  std::unique_ptr<link::Flow> flow_;
  Bytes bytes_;
  LocalRange sge_;
  RemoteRange remote_;
  Heard heard_;
};

TEST_F(RecorderTest, AMessageIsOneRecordBetweenTheEndpoints) {
  auto request = message(100);
  request.has_data = true;
  request.data = 0xABCD'EF01'2345'6789;
  flow_->send(request);
  const Told sent = last(1);
  EXPECT_EQ(sent.kind, RecordKind::kSend);
  EXPECT_EQ(sent.operation, 2);  // tagged
  EXPECT_EQ(sent.flags, 1);      // data
  EXPECT_EQ(sent.outcome, 0);
  EXPECT_EQ(sent.tag, 0x1234u);
  EXPECT_EQ(sent.data, request.data);
  EXPECT_EQ(sent.length, 100u);
  EXPECT_EQ(sent.rendezvous_id, 0u);
  EXPECT_EQ(sent.bytes, bytes_);
  EXPECT_EQ(sent.route.source_port, 40001);
  EXPECT_EQ(sent.route.destination_port, 40002);
}

TEST_F(RecorderTest, ARecordHasTheFirstBytesOfALargeMessage) {
  message(5000);
  const LocalRange sges[] = {sge_, sge_};
  link::SendRequest request;
  request.sges = sges;
  request.length = 10'000;
  flow_->send(request);
  const Told sent = last(1);
  EXPECT_EQ(sent.length, 10'000u);
  EXPECT_EQ(sent.bytes, Bytes(kMaxRecordBytes, std::byte{0x5A}));
}

TEST_F(RecorderTest, BytesThatAreNotMappedAreMissing) {
  constexpr std::size_t kPage = 4096;
  void* const gone = ::mmap(nullptr, kPage, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(gone, MAP_FAILED);
  auto request = message(10);
  const LocalRange sges[] = {sge_, {gone, 20}, sge_};
  request.sges = sges;
  request.length = 40;
  fake_->outcome = Outcome::failed(EFAULT);
  EXPECT_EQ(flow_->send(request).error, EFAULT);
  const Told sent = last(1);
  EXPECT_EQ(sent.outcome, 3);
  EXPECT_EQ(sent.reason, EFAULT);
  EXPECT_EQ(sent.length, 40u);
  EXPECT_EQ(sent.bytes, bytes_);
  ::munmap(gone, kPage);
}

TEST_F(RecorderTest, AnOperationThatIsNotTakenHasNoRecord) {
  fake_->outcome = Outcome::again();
  EXPECT_EQ(flow_->send(message(10)).state, Outcome::State::kAgain);
  EXPECT_EQ(flow_->access(access(true, 10)).state, Outcome::State::kAgain);
  EXPECT_TRUE(records().empty());
  fake_->outcome = Outcome::done();
  flow_->send(message(3));
  EXPECT_EQ(last(1).bytes.size(), 3u);
}

TEST_F(RecorderTest, AnOperationThatFailsHasItsErrno) {
  fake_->outcome = Outcome::failed(ECONNRESET);
  EXPECT_EQ(flow_->access(access(false, 10)).error, ECONNRESET);
  const Told read = last(1);
  EXPECT_EQ(read.kind, RecordKind::kRead);
  EXPECT_EQ(read.outcome, 3);
  EXPECT_EQ(read.reason, ECONNRESET);
  EXPECT_TRUE(read.bytes.empty());
}

TEST_F(RecorderTest, ARefusedAccessHasTheNumberOfTheRule) {
  fake_->outcome = Outcome::failed(EACCES, 2);
  EXPECT_EQ(flow_->access(access(true, 20)).error, EACCES);
  const Told write = last(1);
  EXPECT_EQ(write.outcome, 2);
  EXPECT_EQ(write.reason, 2);
  EXPECT_EQ(write.bytes, bytes_);
}

TEST_F(RecorderTest, APendingMessageAndItsWithdrawalHaveTheSameExchange) {
  fake_->outcome = Outcome::pending();
  auto request = message(300'000);
  request.until_delivered = true;
  flow_->send(request);
  const Told sent = last(1);
  EXPECT_EQ(sent.outcome, 1);
  EXPECT_EQ(sent.flags, 2);  // until delivered
  EXPECT_EQ(sent.rendezvous_id, cookie());
  Ended ended;
  EXPECT_TRUE(flow_->cancel(&bytes_, ended));
  EXPECT_EQ(ended.cookies, std::vector<void*>{&bytes_});
  const Told withdrawn = last(2);
  EXPECT_EQ(withdrawn.kind, RecordKind::kWithdrawal);
  EXPECT_EQ(withdrawn.rendezvous_id, cookie());
  EXPECT_EQ(withdrawn.route.source_port, 40001);
  EXPECT_FALSE(flow_->cancel(&bytes_, ended));
  EXPECT_EQ(records().size(), 2u);
}

TEST_F(RecorderTest, APendingMessageEndsAsTheLinkSays) {
  fake_->outcome = Outcome::pending();
  Ended ended;
  flow_->send(message(10));
  flow_->progress(ended);
  EXPECT_EQ(ended.cookies, std::vector<void*>{&bytes_});
  EXPECT_EQ(records().size(), 1u);
}

TEST_F(RecorderTest, AnAccessNamesItsFirstRangeAndTheNumberOfRanges) {
  auto request = access(true, 100);
  const RemoteRange ranges[] = {{0x10000, 60, RegionKey{0x1'0000'0009}},
                                {0x20000, 40, RegionKey{8}}};
  request.remote = ranges;
  request.has_data = true;
  request.data = 5;
  flow_->access(request);
  const Told write = last(1);
  EXPECT_EQ(write.kind, RecordKind::kWrite);
  EXPECT_EQ(write.ranges, 2u);
  EXPECT_EQ(write.key, 0x1'0000'0009u);
  EXPECT_EQ(write.address, 0x10000u);
  EXPECT_EQ(write.length, 100u);
  EXPECT_EQ(write.flags, 1);
  EXPECT_EQ(write.data, 5u);
  EXPECT_EQ(write.bytes, bytes_);
}

TEST_F(RecorderTest, AReadHasTheBytesThatItFound) {
  auto request = access(false, 200);
  std::byte* const moving = bytes_.data();
  fake_->meanwhile = [&] { moving[199] = std::byte{0x11}; };
  flow_->access(request);
  EXPECT_EQ(last(1).bytes, bytes_);
  EXPECT_EQ(bytes_[199], std::byte{0x11});
}

TEST_F(RecorderTest, AnAtomicOperationHasOperandsThenResult) {
  remote_ = {0x10000, 8, RegionKey{9}};
  Bytes operand(8, std::byte{5});
  Bytes compare(8, std::byte{6});
  const LocalRange operands{operand.data(), operand.size()};
  const LocalRange compared{compare.data(), compare.size()};
  link::AtomicRequest request;
  request.action = {AtomicForm::kCompare, AtomicOp::kSwapIfLess, AtomicType::kUint64};
  request.operand = request.result = {&operands, 1};
  request.compare = {&compared, 1};
  request.remote = {&remote_, 1};
  request.length = 8;
  fake_->meanwhile = [&] { std::ranges::fill(operand, std::byte{37}); };
  flow_->atomic(request);
  const Told done = last(1);
  EXPECT_EQ(done.kind, RecordKind::kAtomic);
  EXPECT_EQ(done.operation, static_cast<std::uint8_t>(AtomicOp::kSwapIfLess));
  EXPECT_EQ(done.type, static_cast<std::uint8_t>(AtomicType::kUint64));
  EXPECT_EQ(done.form, static_cast<std::uint8_t>(AtomicForm::kCompare));
  EXPECT_EQ(done.length, 8u);
  EXPECT_EQ(done.key, 9u);
  Bytes expected(8, std::byte{5});
  expected.resize(16, std::byte{6});
  expected.resize(24, std::byte{37});
  EXPECT_EQ(done.bytes, expected);
  fake_->meanwhile = {};
  fake_->outcome = Outcome::failed(EACCES, 5);
  EXPECT_EQ(flow_->atomic(request).error, EACCES);
  const Told refused = last(2);
  EXPECT_EQ(refused.outcome, 2);
  EXPECT_EQ(refused.reason, 5);
  EXPECT_EQ(refused.bytes.size(), 16u);
}

TEST_F(RecorderTest, AnArrivalIsARecordFromThePeer) {
  const Bytes payload(40, std::byte{0x33});
  link::Arrival arrival;
  arrival.tag = 77;
  arrival.length = payload.size();
  arrival.payload = payload.data();
  arrive(arrival);
  EXPECT_EQ(heard_.tags, std::vector<std::uint64_t>{77});
  const Told arrived = last(1);
  EXPECT_EQ(arrived.kind, RecordKind::kArrival);
  EXPECT_EQ(arrived.operation, 1);
  EXPECT_EQ(arrived.flags, 0);
  EXPECT_EQ(arrived.tag, 77u);
  EXPECT_EQ(arrived.bytes, payload);
  EXPECT_EQ(arrived.route.source_port, 40002);
  EXPECT_EQ(arrived.route.destination_port, 40001);
}

TEST_F(RecorderTest, AnOfferHasNoBytesAndCanBeWithdrawn) {
  link::Arrival arrival;
  arrival.length = 20'000;
  arrival.offer = {3, 55};
  link_->arrivals.withdrawn = {arrival.offer};
  arrive(arrival);
  EXPECT_EQ(heard_.withdrawals, std::vector<std::uint32_t>{55});
  const auto all = records();
  ASSERT_EQ(all.size(), 2u);
  EXPECT_EQ(all[0].flags, 4);  // offered
  EXPECT_EQ(all[0].length, 20'000u);
  EXPECT_EQ(all[0].rendezvous_id, 55u);
  EXPECT_TRUE(all[0].bytes.empty());
  EXPECT_EQ(all[1].kind, RecordKind::kWithdrawal);
  EXPECT_EQ(all[1].rendezvous_id, 55u);
  EXPECT_EQ(all[1].route.source_port, 40002);
}

TEST_F(RecorderTest, AnOfferThatIsAcceptedIsReceived) {
  link::Arrival arrival;
  arrival.length = 20'000;
  arrival.offer = {3, 55};
  arrive(arrival);
  Bytes room(20'000);
  const LocalRange sge{room.data(), room.size()};
  recorder_->inbox().accept(heard_, arrival.offer, {&sge, 1}, room.size(), &room);
  EXPECT_EQ(heard_.taken, std::vector<void*>{&room});
}

TEST_F(RecorderTest, AnAccessOfAPeerIsSeenByItsData) {
  link::Arrival arrival;
  arrival.operation = link::MessageOperation::kWriteData;
  arrival.has_data = true;
  arrival.tag = 5000;  // the length
  arrival.data = 0xABCD'EF01'2345'6789;
  arrive(arrival);
  const Told arrived = last(1);
  EXPECT_EQ(arrived.operation, 3);
  EXPECT_EQ(arrived.flags, 1);
  EXPECT_EQ(arrived.tag, 5000u);
  EXPECT_EQ(arrived.data, arrival.data);
}

TEST_F(RecorderTest, DatagramsGoToOneOrToAGroup) {
  const os::SocketAddress group = os::address_of("239.1.2.3", 5000);
  auto request = message(99);
  request.operation = link::MessageOperation::kDatagram;
  flow_->send(request);
  EXPECT_EQ(last(1).route.destination_port, 40002);
  flow_ = std::move(recorder_->connect_group(group)).value();
  flow_->send(request);
  EXPECT_EQ(last(2).route.destination[0], std::byte{239});
  ASSERT_TRUE(recorder_->join(group));
  link::Arrival arrival;
  arrival.operation = link::MessageOperation::kDatagram;
  arrival.tag = link::group_number(group);
  arrival.payload = bytes_.data();
  arrival.length = bytes_.size();
  arrive(arrival);
  const Told arrived = last(3);
  EXPECT_EQ(arrived.route.destination[0], std::byte{239});
  EXPECT_EQ(arrived.route.source_port, 40002);
}

TEST_F(RecorderTest, ManagementDatagramsHaveRecordsInBothDirections) {
  const os::SocketAddress peer = os::address_of("127.0.0.1", 40002);
  const Bytes datagram(60, std::byte{0x44});
  recorder_->record_datagram(wire::CaptureDirection::kSent, peer, datagram);
  const Told sent = last(1);
  EXPECT_EQ(sent.kind, RecordKind::kManagement);
  EXPECT_EQ(sent.length, 60u);
  EXPECT_EQ(sent.bytes, datagram);
  EXPECT_EQ(sent.route.source_port, 40001);
  recorder_->record_datagram(wire::CaptureDirection::kReceived, peer, datagram);
  EXPECT_EQ(last(2).route.source_port, 40002);
}

TEST_F(RecorderTest, AFullCaptureStopsNoOperation) {
  flow_.reset();
  capture_ = Capture::open({directory_.file("g"), 1}).value();
  recorder_ = std::make_unique<Recorder>(capture_, os::address_of("127.0.0.1", 40001),
                                         std::make_unique<FakeLink>());
  flow_ = std::move(recorder_->connect(os::address_of("127.0.0.1", 40002))).value();
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(flow_->send(message(10)).state, Outcome::State::kDone);
  }
  EXPECT_TRUE(records().empty());
}

}  // namespace
}  // namespace weft::capture
