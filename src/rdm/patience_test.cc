// SPDX-License-Identifier: BSD-2-Clause
// How long does an endpoint wait for a peer?
#include <gtest/gtest.h>

#include <bit>

#include "simulated_endpoint.h"

namespace weft::rdm::testing {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using State = link::Outcome::State;

struct PatienceTest : ::testing::Test {
  World world;
  Options device;
  RdmOptions options;
  Bytes bytes = pattern(100, 1);
  std::unique_ptr<Endpoint> a;
  Endpoint b{world};

  PatienceTest() { options.device = &device; }
  // Asks the other one for a flow, and has a message for it that waits.
  link::Flow& ask(milliseconds connect_timeout) {
    device.connect_timeout = connect_timeout;
    a = std::make_unique<Endpoint>(world, options);
    a->flows.push_back(std::move(a->open(b.address)).value());
    EXPECT_EQ(send(*a, b, *a->flows.back(), 1, bytes, true, true).state, State::kPending);
    a->poll();
    return *a->flows.back();
  }
};

TEST_F(PatienceTest, SendsToAPeerThatNeverPollsEndInTime) {
  link::Flow& flow = ask(milliseconds(50));
  const os::Time begin = world.network.now;
  ASSERT_TRUE(until({a.get()}, [&] { return a->ends.has(1); }));
  EXPECT_EQ(a->ends.ended_ones[1], (FlowLog::End{EHOSTUNREACH, 0}));
  EXPECT_GE(world.network.now - begin, milliseconds(50));
  EXPECT_LT(world.network.now - begin, milliseconds(60));
  EXPECT_NE(flow.check_peer(a->ends), link::PeerState::kAlive);
}

// A crowd that has no time to answer is not asked all the more: at the beginning, and then after 2,
// 4, 8... milliseconds, and after half a second at most.
TEST_F(PatienceTest, UnansweredRequestsBecomeRare) {
  ask(seconds(10));
  for (const unsigned passed : {100U, 600U, 3000U}) {
    world.pass(os::Time{} + milliseconds(passed) - world.network.now, {a.get()});
    EXPECT_GT(a->sent(), 1U);
    EXPECT_LE(a->sent(), static_cast<std::uint64_t>(std::bit_width(passed / 2 + 1)) + passed / 500);
  }
}

TEST_F(PatienceTest, AnAnswerThatLiesUnreadWhenTheTimeIsOverCounts) {
  ask(milliseconds(1));
  world.pass(milliseconds(5), {&b});
  ASSERT_TRUE(until({a.get(), &b}, [&] { return a->ends.has(1); }));
  EXPECT_EQ(a->ends.ended_ones[1], (FlowLog::End{0, 0}));
}

TEST_F(PatienceTest, TimeWithoutPollsIsNotHeldAgainstThePeer) {
  ask(milliseconds(300));
  world.pass(milliseconds(400), {});
  a->poll();
  ASSERT_TRUE(until({&b, a.get()}, [&] { return a->ends.has(1); }));
  EXPECT_EQ(a->ends.ended_ones[1], (FlowLog::End{0, 0}));
}

// Its socket is there, so that its host says nothing.
TEST_F(PatienceTest, APeerThatIsStoppedLivesUntilPatienceEnds) {
  device.peer_timeout = milliseconds(300);
  Endpoint impatient(world, options);
  Endpoint patient(world);
  for (Endpoint* peer : {&impatient, &patient}) {
    ASSERT_NE(connect(*peer, b), nullptr);
    EXPECT_EQ(send(*peer, b, *peer->flows.back(), 1, bytes, true).state, State::kPending);
  }
  ASSERT_TRUE(until({&impatient, &patient}, [&] { return impatient.ends.has(1); }));
  EXPECT_EQ(impatient.ends.ended_ones[1], (FlowLog::End{ECONNRESET, 0}));
  EXPECT_EQ(impatient.flows.back()->check_peer(impatient.ends), link::PeerState::kDied);
  EXPECT_FALSE(patient.ends.has(1));
  ASSERT_TRUE(until({&patient, &b}, [&] { return patient.ends.has(1); }));
  EXPECT_EQ(patient.ends.ended_ones[1], (FlowLog::End{0, 0}));
}

// The error for a packet that was sent before the peer's bind comes late.
TEST_F(PatienceTest, AnErrorFromBeforeThePeerWasThereIsNoProof) {
  Endpoint late(world);
  world.leave(late.address);
  b.flows.push_back(std::move(b.open(late.address)).value());
  world.pass(std::chrono::microseconds(50), {&b});
  world.enter(late.address, late);
  late.flows.push_back(std::move(late.open(b.address)).value());
  ASSERT_TRUE(until({&b, &late}, [&] { return late.flows[0]->reached(); }));
  os::UdpError error;
  error.peer = late.address;
  error.what = os::UdpError::What::kPortUnreachable;
  b.host.report(error);
  world.pass(seconds(5), {&b, &late});
  send(late, b, *late.flows[0], 1, bytes, true);
  ASSERT_TRUE(until({&b, &late}, [&] { return late.ends.has(1); }));
  EXPECT_EQ(late.ends.ended_ones[1].error, 0);
  EXPECT_TRUE(b.log.closed.empty());
}

}  // namespace
}  // namespace weft::rdm::testing
