// SPDX-License-Identifier: BSD-2-Clause
// Is the queue pair of a service found, and are lost and forged messages survived?
#include <gtest/gtest.h>

#include "test_support.h"

namespace weft::cm {
namespace {

using namespace testing;

struct Query : ::testing::Test {
  ConnectionId ask(std::uint64_t service = kService, bool ends_unreachable = false) {
    ResolveRequest request;
    request.to = pair.b.here;
    request.req.service = service;
    request.req.data[0] = std::byte{7};
    request.ends_unreachable = ends_unreachable;
    return pair.a.agent.resolve(request, pair.a.program, this, pair.now).value();
  }
  // b answers the request that it has heard of last.
  Status answer() {
    wire::CmSidrRep reply;
    reply.qpn = 5;
    reply.queue_key = 6;
    if (!pair.b.program.events.empty()) at_b = pair.b.program.events.back().event.id;
    return pair.b.agent.answer(at_b, reply, pair.now);
  }

  Pair pair;
  ConnectionId at_b = 0;
};

TEST_F(Query, IsAnsweredByItsListener) {
  const ConnectionId id = ask();
  pair.carry();
  const Heard asked = pair.b.program.events.at(0);
  EXPECT_EQ(asked.event.context, &pair.b);
  EXPECT_EQ(std::get<wire::CmSidrReq>(asked.mad->message).data[0], std::byte{7});
  ASSERT_TRUE(answer());
  pair.carry();
  const Heard found = pair.a.program.events.at(0);
  EXPECT_EQ(found.event.id, id);
  EXPECT_EQ(found.event.context, this);
  const auto& reply = std::get<wire::CmSidrRep>(found.mad->message);
  EXPECT_EQ(reply.request, id);
  EXPECT_EQ(reply.service, kService);
  EXPECT_EQ(reply.status, 0);
  EXPECT_EQ(reply.qpn, 5);
  EXPECT_EQ(pair.a.program.look() + pair.b.program.look(), "resolvedresolve");
  EXPECT_EQ(answer().error().code, ENOENT) << "once";
  pair.pass(seconds(10));
  EXPECT_TRUE(pair.is_empty());
}

TEST_F(Query, OfAnUnknownServiceIsAnsweredAtOnce) {
  ask(1);
  pair.carry();
  EXPECT_EQ(std::get<wire::CmSidrRep>(pair.a.program.events.at(0).mad->message).status, 1);
}

TEST_F(Query, IsRepeatedAndAnsweredAgainWhenMessagesAreLost) {
  ask();
  pair.lose();
  pair.pass(milliseconds(40));
  EXPECT_EQ(pair.b.program.events.size(), 1) << "repetitions are no further requests";
  ASSERT_TRUE(answer());
  pair.lose();
  pair.pass(milliseconds(500));
  EXPECT_EQ(pair.a.program.look(), "resolved");
  EXPECT_EQ(pair.b.program.look(), "resolve");
}

TEST_F(Query, TimesOut) {
  ask();
  pair.pass(seconds(31), true);
  EXPECT_EQ(pair.a.program.look(), "timed out");
  EXPECT_TRUE(pair.is_empty());
}

TEST_F(Query, TakesNoForgedAnswer) {
  const ConnectionId id = ask();
  const std::uint64_t transaction = pair.a.host.sent.at(0).mad.transaction;
  wire::CmSidrRep reply;
  reply.request = id;
  pair.a.take(pair.b.here, {0, transaction + 1, 0, reply}, pair.now);
  pair.a.take(remote(9), {0, transaction, 0, reply}, pair.now);
  EXPECT_EQ(pair.a.program.look(), "");
}

TEST_F(Query, EndsWithItsListenerOrItsUser) {
  ask();
  pair.carry();
  pair.b.agent.stop(pair.listener, pair.now);
  pair.carry();
  EXPECT_EQ(std::get<wire::CmSidrRep>(pair.a.program.events.at(0).mad->message).status, 1);
  pair.a.program.look();
  pair.a.agent.disconnect(ask(), {}, pair.now);
  EXPECT_EQ(pair.a.agent.entries(), 0);
}

TEST_F(Query, EndsWhenItsPlaceIsUnreachableIfTheUserWantsThat) {
  ask(kService, true);
  pair.a.agent.unreachable(pair.b.here, pair.now);
  pair.a.agent.deliver();
  EXPECT_EQ(pair.a.program.look(), "unreachable");
  EXPECT_EQ(pair.a.agent.entries(), 0);
  ask();
  pair.a.agent.unreachable(pair.b.here, pair.now);
  pair.a.agent.deliver();
  EXPECT_EQ(pair.a.program.look(), "") << "the report may be forged";
  EXPECT_EQ(pair.a.agent.entries(), 1);
}

TEST_F(Query, IsRefusedByDisconnect) {
  ask();
  pair.carry();
  pair.b.agent.disconnect(pair.b.program.events.at(0).event.id, {}, pair.now);
  pair.carry();
  EXPECT_EQ(std::get<wire::CmSidrRep>(pair.a.program.events.at(0).mad->message).status, 2);
}

TEST_F(Query, IsBoundedByTheBacklog) {
  for (std::uint32_t i = 0; i < 1000; ++i) {
    wire::CmSidrReq request;
    request.request = i + 1;
    request.service = kService;
    pair.b.take(spoofed(i), {0, i, 0, request}, pair.now);
  }
  EXPECT_EQ(pair.b.agent.entries(), 16);
  EXPECT_EQ(pair.b.host.count, 0);
  pair.pass(seconds(40), true);
  EXPECT_TRUE(pair.is_empty());
}

}  // namespace
}  // namespace weft::cm
