// SPDX-License-Identifier: BSD-2-Clause
// Which harm do forged packets do that begin or end flows? The attacker sends from any address, and
// sees nothing of what others send.
#include <gtest/gtest.h>

#include <deque>

#include "os/loopback_support.h"
#include "packets_by_hand.h"
#include "rdm/flow_message.h"
#include "rdm/message.h"
#include "regions_test_support.h"
#include "simulated_host.h"
#include "wire/cm_message.h"

namespace weft::rdm::testing {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

Regions& regions() {
  static Regions all;
  return all;
}

// An endpoint at the address of that number, and what it was told.
struct End final : link::InboxSink, link::FlowSink {
  End(Network& network, std::uint8_t number) : host(network, number, 1500, 0) {
    RdmOptions options;
    options.name = host.address;
    options.domain = kDomain;
    options.regions = regions().open();
    engine = std::make_unique<RdmEngine>(
        host, options, RdmEngine::LocalEnd{roce::queue_pair_at(host.address.port()), 400'000},
        host.stats);
    host.attach(*engine);
  }
  ~End() override { flow.reset(); }
  End(const End&) = delete;
  End& operator=(const End&) = delete;

  void connect(const End& peer) { flow = std::move(engine->connect(peer.host.address)).value(); }
  void say(std::uint64_t tag) {
    std::uint64_t word = tag;
    const LocalRange piece{reinterpret_cast<std::byte*>(&word), sizeof word};
    link::SendRequest request;
    request.operation = link::MessageOperation::kTagged;
    request.must_copy = true;
    request.tag = tag;
    request.pieces = {&piece, 1};
    request.length = sizeof word;
    EXPECT_NE(flow->send(request).state, link::Outcome::State::kFailed);
  }
  bool is_reached() { return flow->reached() && is_alive(); }
  bool is_alive() { return flow->check_peer(*this) == link::PeerState::kAlive; }

  void source_opened(std::uint32_t, const os::SocketAddress& address) override {
    opened.push_back(address);
  }
  void source_closed(std::uint32_t, bool died) override { (died ? this->died : left) += 1; }
  void arrived(const link::Arrival& arrival) override { tags.push_back(arrival.tag); }
  void received(void*, int) override {}
  void ended(void*, int, int) override {}

  SimulatedHost host;
  std::unique_ptr<RdmEngine> engine;
  std::unique_ptr<link::Flow> flow;
  std::vector<os::SocketAddress> opened;
  std::size_t died = 0;
  std::size_t left = 0;
  std::vector<std::uint64_t> tags;
};

struct ForgeryTest : ::testing::Test {
  Network network{Weather{}, 0, 1};
  std::deque<End> ends;
  End* a = &add(0);
  End* b = &add(1);
  std::map<std::string, unsigned> drawn;  // packets to addresses where no endpoint is

  End& add(std::uint8_t number) { return ends.emplace_back(network, number); }
  void SetUp() override {
    a->connect(*b);
    ASSERT_TRUE(until(seconds(1), [&] { return a->is_reached(); }));
  }
  // Polls all endpoints each millisecond.
  bool until(milliseconds limit, const std::function<bool()>& holds) {
    const os::Time end = network.now + limit;
    for (; !holds(); network.now += milliseconds(1)) {
      if (network.now >= end) return false;
      while (network.next() <= network.now) deliver(network.take());
      for (End* each : {a, b}) each->engine->poll(*each);
    }
    return true;
  }
  void pass(milliseconds time) {
    until(time, [] { return false; });
  }
  void deliver(Network::Parcel parcel) {
    for (End* each : {a, b}) {
      if (each->host.address == parcel.path.to) return each->host.arrive(std::move(parcel));
    }
    ++drawn[parcel.path.to.text()];
  }
  void forge(const os::SocketAddress& from, const End& to, std::uint64_t transaction,
             const wire::CmMessage& message) {
    send_by_hand(network, from, to.host.address, transaction, message);
  }
  static wire::CmReq req_from(const os::SocketAddress& name, std::uint64_t station) {
    FlowRequest request;
    request.me = {station, roce::queue_pair_at(name.port()), 3, 4, 1024, 100'000};
    request.name = name;
    wire::CmReq req = write_request(request);
    req.local_id = 1;
    return req;
  }
  // A request of a flow that no endpoint knows.
  void forge_request(const os::SocketAddress& from, const End& to) {
    wire::Packet packet;
    packet.opcode = opcode_of(wire::Transport::kReliableDatagram, wire::Operation::kSendOnly);
    packet.destination = roce::queue_pair_at(to.host.address.port());
    packet.end_to_end_context = 0xABCDEF;
    send_by_hand(network, from, to.host.address, packet, Bytes(kMessageHeader));
  }
  static os::SocketAddress victim(unsigned number) {
    const std::string host = std::to_string(number / 200) + "." + std::to_string(number % 200 + 1);
    return os::address_of("10.9." + host, 1234);
  }
  std::size_t all_drawn() const {
    std::size_t all = 0;
    for (const auto& [address, count] : drawn) all += count;
    return all;
  }
  // Messages still go from a to b, over the same flow.
  void expect_unharmed() {
    a->say(77);
    EXPECT_TRUE(until(seconds(1), [&] { return !b->tags.empty(); }));
    EXPECT_EQ(b->tags, std::vector<std::uint64_t>{77});
    EXPECT_EQ(b->opened.size(), 1U);
    EXPECT_EQ(b->died + b->left, 0U);
    EXPECT_TRUE(a->is_alive());
  }
};

TEST_F(ForgeryTest, AForgedRequestOfAnotherInstanceEndsNoFlow) {
  for (std::uint64_t i = 0; i < 20; ++i) {
    forge(a->host.address, *b, i, req_from(a->host.address, 5 + i));
    forge(b->host.address, *a, i, req_from(b->host.address, 5 + i));
    pass(milliseconds(100));
  }
  expect_unharmed();
}

TEST_F(ForgeryTest, ForgedRejectionsAndDisconnectsEndNoFlow) {
  const std::uint32_t id = std::uint32_t{a->host.address.port()} << 16;
  for (std::uint32_t number = 0; number < 0x1'0000; ++number) {
    wire::CmRej rej;
    rej.remote_id = id | number;
    rej.reason = number % 2 == 0 ? wire::CmReason::kConsumer : wire::CmReason::kStale;
    forge(b->host.address, *a, number, rej);
    wire::CmDreq dreq{7, id | number, roce::queue_pair_at(a->host.address.port()), {}};
    forge(b->host.address, *a, number, dreq);
    if (number % 64 == 0) pass(milliseconds(1));
  }
  for (int i = 0; i < 20; ++i) {
    wire::CmRej rej;  // of packets of an unknown flow
    rej.reason = wire::CmReason::kStale;
    forge(b->host.address, *a, 0, rej);
    pass(milliseconds(100));
  }
  expect_unharmed();
}

TEST_F(ForgeryTest, ForgedIcmpErrorsEndNoFlow) {
  for (int i = 0; i < 20; ++i) {
    for (End* each : {a, b}) {
      os::UdpError error;
      error.peer = (each == a ? b : a)->host.address;
      error.what = os::UdpError::What::kPortUnreachable;
      each->host.report(error);
    }
    pass(milliseconds(100));
  }
  expect_unharmed();
}

TEST_F(ForgeryTest, APeerThatIsGoneEndsItsFlowsAfterAnError) {
  End* const gone = std::exchange(b, a);
  os::UdpError error;
  error.peer = gone->host.address;
  error.what = os::UdpError::What::kPortUnreachable;
  a->host.report(error);
  EXPECT_TRUE(until(milliseconds(1500), [&] { return !a->is_alive(); }));
}

TEST_F(ForgeryTest, ARestartedPeerIsReachableWithinTwoSeconds) {
  b->connect(*a);
  ASSERT_TRUE(until(seconds(1), [&] { return b->is_reached() && !a->opened.empty(); }));
  b = &add(1);  // without a word
  b->connect(*a);
  EXPECT_TRUE(until(seconds(2), [&] { return b->is_reached(); }));
  EXPECT_EQ(a->died, 1U);
  EXPECT_FALSE(a->is_alive());
  EXPECT_EQ(a->opened.size(), 2U);
}

// Packets for a flow that an endpoint does not know: its host has restarted, and it does not ask.
TEST_F(ForgeryTest, ASenderNoticesThatItsPeerHasRestarted) {
  b = &add(1);
  a->say(1);
  EXPECT_TRUE(until(seconds(2), [&] { return !a->is_alive(); }));
}

TEST_F(ForgeryTest, AForgedRequestDrawsFourPacketsAtMost) {
  const os::SocketAddress victim = os::address_of("10.9.9.9", 1234);
  forge(victim, *b, 1, req_from(victim, 5));
  pass(seconds(120));
  EXPECT_GE(drawn[victim.text()], 1U);
  EXPECT_LE(drawn[victim.text()], 4U);
}

TEST_F(ForgeryTest, AThousandForgedRequestsLeaveNothingAfterTheirDeadline) {
  for (unsigned i = 0; i < 1000; ++i) {
    forge(victim(i), *b, i, req_from(victim(i), 5 + i));
    if (i % 10 == 0) pass(milliseconds(1));
  }
  pass(seconds(10));
  const std::size_t taken = b->opened.size() - 1;
  EXPECT_GE(taken, 500U);
  EXPECT_LT(taken, 600U) << "half of the credits, and those of 100 ms";
  EXPECT_EQ(b->died + b->left, taken);
  for (const auto& [address, count] : drawn) EXPECT_LE(count, 4U) << address;
  b->opened.resize(1);
  b->died = b->left = 0;
  expect_unharmed();
}

// The REQ of the change is proven by the flow's identity, and waits for no RTU.
TEST_F(ForgeryTest, AFloodEndsNoFlowThatChangesItsPathMtu) {
  const os::SocketAddress from_b = b->host.address;
  network.loses = [&](const roce::Path& path, const Bytes&) { return path.from == from_b; };
  a->host.narrow(1000, {from_b});
  pass(milliseconds(20));
  for (unsigned i = 0; i < 5000; ++i) {
    forge(victim(i), *b, i, req_from(victim(i), 5 + i));
    if (i % 100 == 0) pass(milliseconds(1));
  }
  network.loses = nullptr;
  a->say(77);
  EXPECT_TRUE(until(seconds(1), [&] { return !b->tags.empty(); }));
  EXPECT_TRUE(a->is_alive());
  EXPECT_EQ(b->died, 0U);
}

TEST_F(ForgeryTest, ARequestThatNamesAnotherAddressThanItsSourceIsRefused) {
  const os::SocketAddress source = os::address_of("10.9.9.9", 1234);
  for (const os::SocketAddress& name : {a->host.address, os::address_of("10.9.9.9", 1235)}) {
    forge(source, *b, name.port(), req_from(name, 5));
    pass(seconds(1));
  }
  EXPECT_EQ(b->opened.size(), 1U);
  EXPECT_EQ(drawn[source.text()], 2U) << "a REJ each";
  EXPECT_EQ(drawn.size(), 1U);
}

TEST_F(ForgeryTest, PacketsOfAnUnknownFlowDraw50RejectionsASecondForOneSource) {
  for (unsigned i = 0; i < 10'000; ++i) {
    forge_request(victim(1), *b);
    if (i % 20 == 0) pass(milliseconds(1));
  }
  EXPECT_EQ(drawn[victim(1).text()], 50U) << "in half a second";
  pass(milliseconds(600));
  EXPECT_EQ(b->host.stats.of(Stat::kUnknownFlow), 10'000U);
  forge_request(victim(1), *b);
  pass(milliseconds(10));
  EXPECT_EQ(drawn[victim(1).text()], 51U) << "in the next second";
  expect_unharmed();
}

TEST_F(ForgeryTest, PacketsOfUnknownFlowsDraw1000RejectionsASecondInAll) {
  for (unsigned i = 0; i < 10'000; ++i) {
    forge_request(victim(i), *b);
    if (i % 20 == 0) pass(milliseconds(1));
  }
  EXPECT_EQ(all_drawn(), 1000U) << "in half a second";
  expect_unharmed();
}

// Each of them comes twice, so that it is taken during a flood. REQs draw REJs by the same limits.
TEST_F(ForgeryTest, RefusedRequestsDraw50RejectionsASecondForOneSource) {
  for (unsigned i = 0; i < 10'000; ++i) {
    forge(victim(1), *b, i / 2, req_from(a->host.address, 5));
    if (i % 20 == 0) pass(milliseconds(1));
  }
  EXPECT_EQ(drawn[victim(1).text()], 50U) << "in half a second";
  expect_unharmed();
}

// The REJ that the limit has held back is sent for a repeated REQ.
TEST_F(ForgeryTest, ARefusedRequesterHearsOfItAfterAFlood) {
  for (unsigned i = 0; i < 100; ++i) forge_request(victim(1), *b);
  pass(milliseconds(10));
  EXPECT_EQ(drawn[victim(1).text()], 50U);
  forge(victim(1), *b, 1, req_from(a->host.address, 5));
  pass(milliseconds(500));
  EXPECT_EQ(drawn[victim(1).text()], 50U);
  pass(milliseconds(500));
  forge(victim(1), *b, 1, req_from(a->host.address, 5));
  pass(milliseconds(10));
  EXPECT_EQ(drawn[victim(1).text()], 51U);
}

}  // namespace
}  // namespace weft::rdm::testing
