// SPDX-License-Identifier: BSD-2-Clause
// Which harm do forged packets do that begin or end flows? The attacker sends from any address, and
// sees nothing of what others send.
#include <gtest/gtest.h>

#include <deque>

#include "simulated_endpoint.h"

namespace weft::rdm::testing {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

struct ForgeryTest : ::testing::Test {
  World world;
  std::deque<Endpoint> ends;
  Endpoint* a = &ends.emplace_back(world);
  Endpoint* b = &ends.emplace_back(world);

  void SetUp() override {
    world.reports = false;
    connect(*a, *b);
    ASSERT_TRUE(is_reached(*a));
  }
  bool until(milliseconds limit, const std::function<bool()>& holds) {
    return world.until({a, b}, holds, limit);
  }
  void pass(milliseconds time) { world.pass(time, {a, b}); }
  static bool is_alive(Endpoint& end) {
    return end.flows.at(0)->check_peer(end.ends) == link::PeerState::kAlive;
  }
  static bool is_reached(Endpoint& end) { return end.flows.at(0)->reached() && is_alive(end); }
  static std::size_t died(const Endpoint& end) {
    return static_cast<std::size_t>(
        std::ranges::count_if(end.log.closed, [](const auto& each) { return each.died; }));
  }
  static void say(Endpoint& end, std::uint64_t tag) {
    Bytes word(8);
    EXPECT_EQ(send(end, end, *end.flows.at(0), tag, word, false, true).error, 0);
  }
  // The process at b's address is another one, without a word.
  void restart_b() {
    b->kill();
    b = &ends.emplace_back(world, std::uint8_t{1});
  }
  static os::UdpError unreachable(const Endpoint& peer) {
    os::UdpError error;
    error.peer = peer.address;
    error.what = os::UdpError::What::kPortUnreachable;
    return error;
  }
  void forge(const os::SocketAddress& from, const Endpoint& to, std::uint64_t transaction,
             const wire::CmMessage& message) {
    world.forge(from, to.address, FlowHand::message(payload_of(transaction, message)));
  }
  static wire::CmReq req_from(const os::SocketAddress& name, std::uint64_t endpoint_id) {
    FlowRequest request;
    request.me = {endpoint_id, roce::queue_pair_at(name.port()), 3, 4, 1024, 100'000};
    request.name = name;
    wire::CmReq req = write_request(request);
    req.local_id = 1;
    return req;
  }
  // A request of a flow that no endpoint knows.
  void forge_request(const os::SocketAddress& from, const Endpoint& to) {
    wire::Packet packet;
    packet.opcode = opcode_of(wire::Transport::kReliableDatagram, wire::Operation::kSendOnly);
    packet.destination = roce::queue_pair_at(to.address.port());
    packet.end_to_end_context = 0xABCDEF;
    world.forge(from, to.address, FlowHand::packet(packet, Bytes(kMessageHeader)));
  }
  static os::SocketAddress victim(unsigned number) {
    const std::string host = std::to_string(number / 200) + "." + std::to_string(number % 200 + 1);
    return os::address_of("10.9." + host, 1234);
  }
  std::size_t all_drawn() const {
    std::size_t all = 0;
    for (const auto& [address, count] : world.strays) all += count;
    return all;
  }
  // Messages still go from a to b, over the same flow.
  void expect_unharmed() {
    say(*a, 77);
    EXPECT_TRUE(until(seconds(1), [&] { return !b->log.messages.empty(); }));
    EXPECT_EQ(b->log.messages.at(0).arrival.tag, 77U);
    EXPECT_EQ(b->log.messages.size(), 1U);
    EXPECT_EQ(b->log.opened.size(), 1U);
    EXPECT_TRUE(b->log.closed.empty());
    EXPECT_TRUE(is_alive(*a));
  }
};

TEST_F(ForgeryTest, AForgedRequestOfAnotherInstanceEndsNoFlow) {
  for (std::uint64_t i = 0; i < 20; ++i) {
    forge(a->address, *b, i, req_from(a->address, 5 + i));
    forge(b->address, *a, i, req_from(b->address, 5 + i));
    pass(milliseconds(100));
  }
  expect_unharmed();
}

TEST_F(ForgeryTest, ForgedRejectionsAndDisconnectsEndNoFlow) {
  const std::uint32_t id = std::uint32_t{a->address.port()} << 16;
  for (std::uint32_t number = 0; number < 0x1'0000; ++number) {
    wire::CmRej rej;
    rej.remote_id = id | number;
    rej.reason = number % 2 == 0 ? wire::CmReason::kConsumer : wire::CmReason::kStale;
    forge(b->address, *a, number, rej);
    wire::CmDreq dreq{7, id | number, roce::queue_pair_at(a->address.port()), {}};
    forge(b->address, *a, number, dreq);
    if (number % 64 == 0) pass(milliseconds(1));
  }
  for (int i = 0; i < 20; ++i) {
    wire::CmRej rej;  // of packets of an unknown flow
    rej.reason = wire::CmReason::kStale;
    forge(b->address, *a, 0, rej);
    pass(milliseconds(100));
  }
  expect_unharmed();
}

TEST_F(ForgeryTest, ForgedIcmpErrorsEndNoFlow) {
  for (int i = 0; i < 20; ++i) {
    a->host.report(unreachable(*b));
    b->host.report(unreachable(*a));
    pass(milliseconds(100));
  }
  expect_unharmed();
}

TEST_F(ForgeryTest, APeerThatIsGoneEndsItsFlowsAfterAnError) {
  b->kill();
  a->host.report(unreachable(*b));
  EXPECT_TRUE(until(milliseconds(1500), [&] { return !is_alive(*a); }));
}

TEST_F(ForgeryTest, ARestartedPeerIsReachableWithinTwoSeconds) {
  connect(*b, *a);
  ASSERT_EQ(a->log.opened.size(), 1U);
  restart_b();
  b->flows.push_back(std::move(b->open(a->address)).value());
  EXPECT_TRUE(until(seconds(2), [&] { return is_reached(*b); }));
  EXPECT_EQ(died(*a), 1U);
  EXPECT_FALSE(is_alive(*a));
  EXPECT_EQ(a->log.opened.size(), 2U);
}

// Packets for a flow that an endpoint does not know: its host has restarted, and it does not ask.
TEST_F(ForgeryTest, ASenderNoticesThatItsPeerHasRestarted) {
  restart_b();
  say(*a, 1);
  EXPECT_TRUE(until(seconds(2), [&] { return !is_alive(*a); }));
}

TEST_F(ForgeryTest, AForgedRequestDrawsFourPacketsAtMost) {
  const os::SocketAddress victim = os::address_of("10.9.9.9", 1234);
  forge(victim, *b, 1, req_from(victim, 5));
  pass(seconds(120));
  EXPECT_GE(world.strays[victim.text()], 1U);
  EXPECT_LE(world.strays[victim.text()], 4U);
}

TEST_F(ForgeryTest, AThousandForgedRequestsLeaveNothingAfterTheirDeadline) {
  for (unsigned i = 0; i < 1000; ++i) {
    forge(victim(i), *b, i, req_from(victim(i), 5 + i));
    if (i % 10 == 0) pass(milliseconds(1));
  }
  pass(seconds(10));
  const std::size_t taken = b->log.opened.size() - 1;
  EXPECT_GE(taken, 500U);
  EXPECT_LT(taken, 600U) << "half of the credits, and those of 100 ms";
  EXPECT_EQ(b->log.closed.size(), taken);
  for (const auto& [address, count] : world.strays) EXPECT_LE(count, 4U) << address;
  b->log.opened.resize(1);
  b->log.closed.clear();
  expect_unharmed();
}

// The REQ of the change is proven by the flow's identity, and waits for no RTU.
TEST_F(ForgeryTest, AFloodEndsNoFlowThatChangesItsPathMtu) {
  const os::SocketAddress from_b = b->address;
  world.network.loses = [&](const roce::Path& path, const Bytes&) { return path.from == from_b; };
  a->host.narrow(1000, {from_b});
  pass(milliseconds(20));
  for (unsigned i = 0; i < 5000; ++i) {
    forge(victim(i), *b, i, req_from(victim(i), 5 + i));
    if (i % 100 == 0) pass(milliseconds(1));
  }
  world.network.loses = nullptr;
  say(*a, 77);
  EXPECT_TRUE(until(seconds(1), [&] { return !b->log.messages.empty(); }));
  EXPECT_TRUE(is_alive(*a));
  EXPECT_EQ(died(*b), 0U);
}

TEST_F(ForgeryTest, ARequestThatNamesAnotherAddressThanItsSourceIsRefused) {
  const os::SocketAddress source = os::address_of("10.9.9.9", 1234);
  for (const os::SocketAddress& name : {a->address, os::address_of("10.9.9.9", 1235)}) {
    forge(source, *b, name.port(), req_from(name, 5));
    pass(seconds(1));
  }
  EXPECT_EQ(b->log.opened.size(), 1U);
  EXPECT_EQ(world.strays[source.text()], 2U) << "a REJ each";
  EXPECT_EQ(world.strays.size(), 1U);
}

TEST_F(ForgeryTest, PacketsOfAnUnknownFlowDraw50RejectionsASecondForOneSource) {
  for (unsigned i = 0; i < 10'000; ++i) {
    forge_request(victim(1), *b);
    if (i % 20 == 0) pass(milliseconds(1));
  }
  EXPECT_EQ(world.strays[victim(1).text()], 50U) << "in half a second";
  pass(milliseconds(600));
  EXPECT_EQ(b->stats.of(Stat::kUnknownFlow), 10'000U);
  forge_request(victim(1), *b);
  pass(milliseconds(10));
  EXPECT_EQ(world.strays[victim(1).text()], 51U) << "in the next second";
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
    forge(victim(1), *b, i / 2, req_from(a->address, 5));
    if (i % 20 == 0) pass(milliseconds(1));
  }
  EXPECT_EQ(world.strays[victim(1).text()], 50U) << "in half a second";
  expect_unharmed();
}

// The REJ that the limit has held back is sent for a repeated REQ.
TEST_F(ForgeryTest, ARefusedRequesterHearsOfItAfterAFlood) {
  for (unsigned i = 0; i < 100; ++i) forge_request(victim(1), *b);
  pass(milliseconds(10));
  EXPECT_EQ(world.strays[victim(1).text()], 50U);
  forge(victim(1), *b, 1, req_from(a->address, 5));
  pass(milliseconds(500));
  EXPECT_EQ(world.strays[victim(1).text()], 50U);
  pass(milliseconds(500));
  forge(victim(1), *b, 1, req_from(a->address, 5));
  pass(milliseconds(10));
  EXPECT_EQ(world.strays[victim(1).text()], 51U);
}

}  // namespace
}  // namespace weft::rdm::testing
