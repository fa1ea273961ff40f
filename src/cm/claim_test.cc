// SPDX-License-Identifier: BSD-2-Clause
// Does a request that was claimed depend on its listener any more?
#include <gtest/gtest.h>

#include "test_support.h"

namespace weft::cm {
namespace {

using namespace testing;

class Claim : public ::testing::Test {
 protected:
  // A request arrives at b, whose program takes it over.
  void claim() {
    pair.ask();
    pair.carry();
    const Heard& request = pair.b.program.events.at(0);
    id = request.event.id;
    listener = request.event.listener;
    const Status claimed = pair.b.agent.claim(id, claimer, &marker);
    EXPECT_TRUE(claimed);
  }

  Pair pair;
  Program claimer;
  int marker = 0;
  ConnectionId id = 0;
  ListenerId listener = 0;
};

TEST_F(Claim, OutlivesTheListener) {
  claim();
  pair.b.agent.stop(listener, pair.now);
  EXPECT_EQ(pair.b.host.look(), "");
  AcceptRequest reply;
  reply.rep.qpn = 0x9C4003;
  EXPECT_TRUE(pair.b.agent.accept(id, reply, claimer, &marker, pair.now));
  EXPECT_EQ(pair.b.host.look(), "REP");
}

TEST_F(Claim, DoesNotCountTowardsTheBacklog) {
  claim();
  pair.b.agent.set_backlog(listener, 1);
  pair.ask();
  pair.carry();
  pair.b.agent.deliver();
  EXPECT_EQ(claimer.look(), "");
  EXPECT_TRUE(pair.b.agent.accept(id, {}, claimer, &marker, pair.now));
}

TEST_F(Claim, HasItsEventsReportedToTheClaimer) {
  claim();
  pair.b.program.look();
  pair.a.agent.disconnect(pair.at_a, {}, pair.now);  // withdraws it by a REJ
  pair.carry();
  EXPECT_EQ(pair.b.program.look(), "");
  ASSERT_EQ(claimer.events.size(), 1u);
  EXPECT_EQ(claimer.events[0].event.kind, EventKind::kWithdrawn);
  EXPECT_EQ(claimer.events[0].event.context, &marker);
  EXPECT_EQ(claimer.events[0].event.listener, 0u);
}

TEST_F(Claim, IsRefusedOfADecidedOne) {
  claim();
  EXPECT_TRUE(pair.b.agent.reject(id, wire::CmReason::kConsumer, {}, pair.now));
  EXPECT_EQ(pair.b.agent.claim(id, claimer, &marker).error().code, ENOENT);
  EXPECT_EQ(pair.b.agent.claim(12345, claimer, &marker).error().code, ENOENT);
}

}  // namespace
}  // namespace weft::cm
