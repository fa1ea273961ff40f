// SPDX-License-Identifier: BSD-2-Clause
// Does a connection begin and end as its users and the specification want, whatever is lost?
#include "cm/agent.h"

#include <gtest/gtest.h>

#include <set>

#include "test_support.h"

namespace weft::cm {
namespace {

using namespace testing;

TEST(Agent, MakesAConnectionByThreeMessages) {
  Pair pair;
  pair.ask();
  pair.carry();
  const CmEvent& request = pair.b.program.events.at(0).event;
  EXPECT_EQ(request.listener, pair.listener);
  EXPECT_EQ(request.context, &pair.b);
  EXPECT_EQ(request.remote, pair.a.here);
  pair.accept();
  pair.carry();
  EXPECT_EQ(pair.a.program.events.at(0).event.id, pair.at_a);
  EXPECT_EQ(pair.a.program.look(), "reply");
  ASSERT_TRUE(pair.a.agent.confirm(pair.at_a, {}, pair.now));
  pair.carry();
  EXPECT_EQ(pair.b.program.events.back().event.context, &pair.at_b);
  EXPECT_EQ(pair.b.program.look(), "request established");
  pair.pass(seconds(100));
  EXPECT_EQ(pair.a.host.count, 2) << "REQ, RTU";
  EXPECT_EQ(pair.b.host.count, 1) << "REP";
}

TEST(Agent, FillsInIdsAndGuids) {
  Pair pair;
  pair.ask();
  const auto req = pair.a.host.sent.at(0);
  EXPECT_EQ(req.as<wire::CmReq>().local_id, pair.at_a);
  EXPECT_EQ(pair.at_a >> 16, 40000);
  EXPECT_EQ(req.as<wire::CmReq>().ca_guid, 0x1001);
  pair.carry();
  pair.accept();
  const auto rep = pair.b.host.sent.at(0);
  EXPECT_EQ(rep.mad.transaction, req.mad.transaction);
  EXPECT_EQ(rep.as<wire::CmRep>().local_id, pair.at_b);
  EXPECT_EQ(rep.as<wire::CmRep>().remote_id, pair.at_a);
  EXPECT_EQ(rep.as<wire::CmRep>().ca_guid, 0x1002);
}

TEST(Agent, CarriesPrivateDataBehindTheMad) {
  Pair pair;
  ConnectRequest request = pair.request();
  request.more = Bytes(kMaxMorePrivateData, std::byte{7});
  const auto id = pair.a.agent.connect(request, pair.a.program, nullptr, pair.now);
  ASSERT_TRUE(id);
  pair.carry();
  EXPECT_EQ(pair.b.program.events.at(0).more, request.more);
  AcceptRequest reply;
  reply.more = Bytes(60, std::byte{8});
  const ConnectionId at_b = pair.b.program.events.at(0).event.id;
  ASSERT_TRUE(pair.b.agent.accept(at_b, reply, pair.b.program, nullptr, pair.now));
  pair.carry();
  EXPECT_EQ(pair.a.program.events.at(0).more, reply.more);
}

TEST(Agent, RefusesTooLongPrivateData) {
  Pair pair;
  ConnectRequest request = pair.request();
  request.more.resize(kMaxMorePrivateData + 1);
  EXPECT_EQ(pair.a.agent.connect(request, pair.a.program, nullptr, pair.now).error().code, EINVAL);
  EXPECT_TRUE(pair.is_empty());
  pair.ask();
  pair.carry();
  AcceptRequest reply;
  reply.more.resize(kMaxMorePrivateData + 1);
  const ConnectionId at_b = pair.b.program.events.at(0).event.id;
  EXPECT_EQ(pair.b.agent.accept(at_b, reply, pair.b.program, nullptr, pair.now).error().code,
            EINVAL);
  EXPECT_EQ(pair.b.agent.reject(at_b, wire::CmReason::kConsumer, Bytes(405), pair.now).error().code,
            EINVAL);
  pair.accept();
  pair.carry();
  EXPECT_EQ(pair.a.agent.confirm(pair.at_a, Bytes(225), pair.now).error().code, EINVAL);
  EXPECT_TRUE(pair.a.agent.confirm(pair.at_a, Bytes(224), pair.now));
}

TEST(Agent, RejectsWithReasonAndData) {
  Pair pair;
  pair.ask();
  pair.carry();
  const ConnectionId at_b = pair.b.program.events.at(0).event.id;
  ASSERT_TRUE(
      pair.b.agent.reject(at_b, wire::CmReason::kConsumer, Bytes(404, std::byte{5}), pair.now));
  pair.carry();
  const Heard& heard = pair.a.program.events.at(0);
  const auto& rej = std::get<wire::CmRej>(heard.mad->message);
  EXPECT_EQ(rej.reason, wire::CmReason::kConsumer);
  EXPECT_EQ(rej.data.back(), std::byte{5});
  EXPECT_EQ(heard.more, Bytes(256, std::byte{5}));
  EXPECT_EQ(pair.a.program.look(), "rejected");
  EXPECT_FALSE(pair.b.agent.reject(at_b, wire::CmReason::kConsumer, {}, pair.now)) << "once";
}

TEST(Agent, RejectsAReply) {
  Pair pair;
  pair.ask();
  pair.carry();
  pair.accept();
  pair.carry();
  ASSERT_TRUE(pair.a.agent.reject(pair.at_a, wire::CmReason::kConsumer, {}, pair.now));
  pair.carry();
  EXPECT_EQ(pair.b.program.look(), "request rejected");
}

TEST(Agent, RejectsRequestsForAnUnknownServiceAtOnce) {
  Pair pair;
  ConnectRequest request = pair.request();
  request.req.service = 1;
  ASSERT_TRUE(pair.a.agent.connect(request, pair.a.program, nullptr, pair.now));
  pair.carry();
  const auto& rej = std::get<wire::CmRej>(pair.a.program.events.at(0).mad->message);
  EXPECT_EQ(rej.reason, wire::CmReason::kInvalidService);
  EXPECT_EQ(rej.message, 0);
}

TEST(Agent, RejectsAnUnknownTransport) {
  Pair pair;
  ConnectRequest request = pair.request();
  request.req.transport = 3;
  request.req.extended_transport = 2;
  ASSERT_TRUE(pair.a.agent.connect(request, pair.a.program, nullptr, pair.now));
  pair.carry();
  const auto& rej = std::get<wire::CmRej>(pair.a.program.events.at(0).mad->message);
  EXPECT_EQ(rej.reason, wire::CmReason::kInvalidTransport);
  request.req.extended_transport = 1;
  ASSERT_TRUE(pair.a.agent.connect(request, pair.a.program, nullptr, pair.now));
  pair.carry();
  EXPECT_EQ(pair.b.program.look(), "request");
}

TEST(Agent, HasOneListenerForAService) {
  Pair pair;
  EXPECT_EQ(pair.b.agent.listen(kService, 1, pair.b.program, nullptr).error().code, EADDRINUSE);
  pair.b.agent.stop(pair.listener, pair.now);
  EXPECT_TRUE(pair.b.agent.listen(kService, 1, pair.b.program, nullptr));
}

TEST(Agent, RejectsTheUndecidedRequestsOfAStoppedListener) {
  Pair pair;
  pair.ask();
  pair.carry();
  pair.b.agent.stop(pair.listener, pair.now);
  pair.carry();
  EXPECT_EQ(pair.a.program.look(), "rejected");
  EXPECT_EQ(pair.b.program.look(), "request");
}

TEST(Agent, ReportsNothingMoreOfAStoppedListener) {
  Pair pair;
  pair.ask();
  pair.carry();
  EXPECT_EQ(pair.b.program.look(), "request");
  pair.a.agent.disconnect(pair.at_a, {}, pair.now);
  pair.b.agent.take(pair.a.here, pair.a.host.sent.at(0).bytes, pair.now);  // without deliver()
  EXPECT_TRUE(pair.b.agent.has_events());
  pair.b.agent.stop(pair.listener, pair.now);
  EXPECT_FALSE(pair.b.agent.has_events());
}

// Before listen() an earlier copy of the REQ was rejected.
TEST(Agent, IgnoresALateRejectionOfARequestThatWasAnsweredMeanwhile) {
  Pair pair;
  pair.b.agent.stop(pair.listener, pair.now);
  pair.ask();
  pair.b.agent.take(pair.a.here, pair.a.host.sent.at(0).bytes, pair.now);
  const Sent late = pair.b.host.sent.at(0);
  pair.lose();
  pair.listener = pair.b.agent.listen(kService, 16, pair.b.program, &pair.b).value();
  pair.pass(milliseconds(10));
  pair.accept();
  pair.carry();
  EXPECT_EQ(pair.a.program.look(), "reply");
  pair.a.take(pair.b.here, late.mad, pair.now);
  EXPECT_EQ(pair.a.program.look(), "");
  ASSERT_TRUE(pair.a.agent.confirm(pair.at_a, {}, pair.now));
  pair.a.take(pair.b.here, late.mad, pair.now);
  EXPECT_EQ(pair.a.program.look(), "");
}

TEST(Agent, FinishesAcceptedRequestsOfAStoppedListener) {
  Pair pair;
  pair.ask();
  pair.carry();
  pair.accept();
  pair.b.agent.stop(pair.listener, pair.now);
  pair.carry();
  ASSERT_TRUE(pair.a.agent.confirm(pair.at_a, {}, pair.now));
  pair.carry();
  EXPECT_EQ(pair.b.program.look(), "request established");
}

TEST(Agent, RepeatsALostRequest) {
  Pair pair;
  pair.ask();
  pair.lose();
  pair.pass(milliseconds(2));
  EXPECT_EQ(pair.b.program.look(), "request");
}

TEST(Agent, RepeatsARequestWithGrowingPausesUpToItsLimit) {
  Pair pair;
  pair.ask();
  pair.pass(milliseconds(63), true);
  EXPECT_EQ(pair.a.host.count, 6) << "at 0, 2, 6, 14, 30 and 62 ms";
  pair.pass(seconds(29), true);
  EXPECT_EQ(pair.a.program.look(), "");
  pair.pass(seconds(1), true);
  EXPECT_EQ(pair.a.program.look(), "timed out");
  EXPECT_LT(pair.a.host.count, 75) << "each 500 ms";
  pair.pass(seconds(9));
  EXPECT_TRUE(pair.is_empty());
}

TEST(Agent, WithdrawsARequestThatTookTooLong) {
  Pair pair;
  pair.ask();
  pair.carry();
  pair.pass(milliseconds(29'900), true);
  EXPECT_EQ(pair.b.program.look(), "request");
  pair.now += milliseconds(100);
  pair.a.agent.advance(pair.now);
  pair.carry();
  EXPECT_EQ(pair.a.program.look(), "timed out");
  EXPECT_EQ(pair.b.program.look(), "withdrawn");
}

TEST(Agent, AnswersARepeatedRequestByTheSameReply) {
  Pair pair;
  pair.ask();
  const Sent req = pair.a.host.sent.at(0);
  pair.carry();
  pair.accept();
  const Sent rep = pair.b.host.sent.at(0);
  pair.lose();
  pair.b.agent.take(pair.a.here, req.bytes, pair.now);
  ASSERT_EQ(pair.b.host.sent.size(), 1);
  EXPECT_EQ(pair.b.host.sent[0].bytes, rep.bytes);
  pair.b.agent.deliver();
  EXPECT_EQ(pair.b.program.look(), "request") << "once";
}

TEST(Agent, TakesAPacketOfTheQueuePairForALostRtu) {
  Pair pair;
  pair.ask();
  pair.carry();
  pair.accept();
  pair.carry();
  ASSERT_TRUE(pair.a.agent.confirm(pair.at_a, {}, pair.now));
  pair.lose();
  pair.b.agent.established(pair.at_b, pair.now);
  pair.b.agent.deliver();
  EXPECT_EQ(pair.b.program.look(), "request established");
  pair.b.agent.established(pair.at_b, pair.now);
  pair.b.agent.deliver();
  EXPECT_EQ(pair.b.program.look(), "") << "once";
}

TEST(Agent, RepeatsALostRtuWithItsData) {
  for (const std::size_t length : {0, 100}) {
    Pair pair;
    pair.ask();
    pair.carry();
    pair.accept();
    pair.carry();
    ASSERT_TRUE(pair.a.agent.confirm(pair.at_a, Bytes(length, std::byte{9}), pair.now));
    const Bytes rtu = pair.a.host.sent.at(0).bytes;
    pair.lose();
    pair.now = pair.b.agent.due();
    pair.b.agent.advance(pair.now);
    pair.carry(pair.b, pair.a);
    ASSERT_EQ(pair.a.host.sent.size(), 1);
    EXPECT_EQ(pair.a.host.sent[0].bytes, rtu);
    pair.carry();
    EXPECT_EQ(pair.b.program.look(), "request established");
  }
}

TEST(Agent, GivesUpAnAcceptedRequestWithoutAnRtu) {
  Pair pair;
  pair.ask();
  pair.carry();
  pair.accept();
  pair.carry();
  pair.pass(seconds(8), true);
  EXPECT_EQ(pair.b.program.look(), "request timed out");
  EXPECT_EQ(pair.b.agent.connections(), 0);
}

TEST(Agent, TellsALateRtuThatItsAttemptHasEnded) {
  for (const auto late : {seconds(8), seconds(20)}) {
    Pair pair;
    pair.ask();
    pair.carry();
    pair.accept();
    pair.carry();
    ASSERT_TRUE(pair.a.agent.confirm(pair.at_a, {}, pair.now));
    const Bytes rtu = pair.a.host.sent.at(0).bytes;
    pair.lose();
    pair.pass(late, true);
    pair.a.program.events.clear();
    pair.b.agent.take(pair.a.here, rtu, pair.now);
    pair.carry();
    EXPECT_EQ(pair.a.program.look(), late == seconds(8) ? "disconnected" : "lost");
  }
}

TEST(Agent, DisconnectsByDreqAndDrep) {
  for (const bool watched : {false, true}) {
    Pair pair;
    pair.establish(watched);
    pair.a.agent.disconnect(pair.at_a, bytes_of("bye"), pair.now);
    EXPECT_EQ(pair.a.host.sent.at(0).as<wire::CmDreq>().remote_qpn, 0x9C4003);
    pair.carry();
    const auto& dreq = std::get<wire::CmDreq>(pair.b.program.events.at(0).mad->message);
    EXPECT_EQ(dreq.data[0], std::byte{'b'});
    EXPECT_EQ(pair.b.program.look(), "disconnected");
    EXPECT_EQ(pair.a.program.look(), "");
    EXPECT_EQ(pair.a.agent.connections() + pair.b.agent.connections(), 0);
    pair.pass(milliseconds(100));
    EXPECT_TRUE(pair.is_empty());
    EXPECT_EQ(pair.b.host.count, 2) << "REP, DREP";
  }
}

TEST(Agent, DisconnectsAtBothEndsAtOnce) {
  Pair pair;
  pair.establish();
  pair.a.agent.disconnect(pair.at_a, {}, pair.now);
  pair.b.agent.disconnect(pair.at_b, {}, pair.now);
  pair.carry();
  pair.pass(seconds(1));
  EXPECT_EQ(pair.a.program.look() + pair.b.program.look(), "");
  EXPECT_TRUE(pair.is_empty());
}

TEST(Agent, RepeatsALostDreq) {
  Pair pair;
  pair.establish();
  pair.a.agent.disconnect(pair.at_a, {}, pair.now);
  pair.lose();
  pair.pass(milliseconds(10));
  EXPECT_EQ(pair.b.program.look(), "disconnected");
}

TEST(Agent, AnswersADreqWhoseDrepWasLost) {
  Pair pair;
  pair.establish();
  pair.a.agent.disconnect(pair.at_a, {}, pair.now);
  const Bytes dreq = pair.a.host.sent.at(0).bytes;
  pair.carry(pair.a, pair.b);
  pair.lose();
  pair.now += milliseconds(50);
  pair.b.agent.take(pair.a.here, dreq, pair.now);
  EXPECT_EQ(pair.b.host.look(), "DREP") << "in TimeWait";
  pair.pass(seconds(1), true);
  pair.b.agent.take(pair.a.here, dreq, pair.now);
  EXPECT_EQ(pair.b.host.look(), "DREP") << "unknown by now";
  EXPECT_EQ(pair.b.program.look(), "disconnected") << "once";
}

TEST(Agent, EndsADisconnectionThatIsNotAnswered) {
  Pair pair;
  pair.establish();
  pair.a.agent.disconnect(pair.at_a, {}, pair.now);
  pair.pass(milliseconds(2101), true);
  EXPECT_EQ(pair.a.agent.entries(), 0);
}

TEST(Agent, WithdrawsARequestByDisconnect) {
  Pair pair;
  pair.ask();
  pair.carry();
  pair.a.agent.disconnect(pair.at_a, {}, pair.now);
  EXPECT_EQ(pair.a.host.sent.at(0).as<wire::CmRej>().reason, wire::CmReason::kTimeout);
  pair.carry();
  EXPECT_EQ(pair.b.program.look(), "request withdrawn");
  pair.pass(seconds(8));
  EXPECT_TRUE(pair.is_empty());
}

TEST(Agent, ReportsNothingOfARequestThatIsWithdrawnBeforeItIsReported) {
  Pair pair;
  pair.ask();
  pair.a.agent.disconnect(pair.at_a, {}, pair.now);
  for (const Sent& each : std::exchange(pair.a.host.sent, {})) {
    pair.b.agent.take(pair.a.here, each.bytes, pair.now);
  }
  EXPECT_FALSE(pair.b.agent.has_events());
}

TEST(Agent, ReportsNothingMoreAfterADisconnect) {
  Pair pair;
  pair.establish();
  pair.b.agent.disconnect(pair.at_b, {}, pair.now);
  for (const Sent& each : std::exchange(pair.b.host.sent, {})) {
    pair.a.agent.take(pair.b.here, each.bytes, pair.now);
  }
  EXPECT_TRUE(pair.a.agent.has_events());
  pair.a.agent.disconnect(pair.at_a, {}, pair.now);
  EXPECT_FALSE(pair.a.agent.has_events());
}

TEST(Agent, AnswersARepeatedRequestByTheSameRejection) {
  Pair pair;
  pair.ask();
  const Bytes req = pair.a.host.sent.at(0).bytes;
  pair.carry();
  const ConnectionId at_b = pair.b.program.events.at(0).event.id;
  ASSERT_TRUE(pair.b.agent.reject(at_b, wire::CmReason::kConsumer, bytes_of("no"), pair.now));
  const Bytes rej = pair.b.host.sent.at(0).bytes;
  pair.lose();
  pair.now += seconds(4);
  pair.b.agent.advance(pair.now);
  pair.b.agent.take(pair.a.here, req, pair.now);
  EXPECT_EQ(pair.b.host.sent.at(0).bytes, rej);
  EXPECT_FALSE(pair.b.agent.has_events());
}

TEST(Agent, AsksForPatienceWhileTheListenerDecides) {
  Pair pair;
  pair.ask();
  const Bytes req = pair.a.host.sent.at(0).bytes;
  pair.carry();
  EXPECT_EQ(pair.b.host.count, 0) << "one REQ draws no MRA";
  pair.b.agent.take(pair.a.here, req, pair.now);
  EXPECT_EQ(pair.b.host.sent.at(0).as<wire::CmMra>().service_timeout, 19);
  pair.carry();
  const std::size_t before = pair.a.host.count;
  pair.pass(seconds(2));
  EXPECT_EQ(pair.a.host.count, before);
  pair.pass(seconds(58));
  EXPECT_EQ(pair.a.program.look(), "") << "the limit of 30 s does not run";
  EXPECT_LT(pair.a.host.count, before + 60);
  pair.accept();
  pair.carry();
  EXPECT_EQ(pair.a.program.look(), "reply");
}

TEST(Agent, SendsTheMraThatItsUserChooses) {
  Pair pair;
  pair.ask();
  pair.carry();
  const ConnectionId at_b = pair.b.program.events.at(0).event.id;
  EXPECT_EQ(pair.b.agent.delay(at_b, 32, pair.now).error().code, EINVAL);
  ASSERT_TRUE(pair.b.agent.delay(at_b, 22, pair.now));
  EXPECT_EQ(pair.b.host.sent.at(0).as<wire::CmMra>().service_timeout, 22);
  pair.carry();
  const std::size_t before = pair.a.host.count;
  pair.pass(seconds(17));
  EXPECT_EQ(pair.a.host.count, before);
  EXPECT_EQ(pair.b.agent.delay(1, 22, pair.now).error().code, ENOENT);
}

TEST(Agent, SendsNoMorePacketsForARequestWhenMrasComeFirst) {
  for (unsigned delays = 0; delays < 5; ++delays) {
    Pair pair;
    pair.ask();
    pair.carry();
    pair.b.host.sent.clear();
    const std::size_t before = pair.b.host.count;
    for (unsigned i = 0; i < delays; ++i) {
      ASSERT_TRUE(pair.b.agent.delay(pair.b.program.events.at(0).event.id, 8, pair.now));
    }
    pair.accept();
    ASSERT_TRUE(pair.accepted);
    while (pair.b.agent.due() != Time::max()) pair.b.agent.advance(pair.b.agent.due());
    EXPECT_EQ(pair.b.host.count - before, 4U) << delays;
  }
}

TEST(Agent, AsksForPatienceWhileTheRequesterDecides) {
  Pair pair;
  pair.ask();
  pair.carry();
  pair.accept();
  pair.carry();
  pair.pass(seconds(20));
  EXPECT_EQ(pair.a.program.look(), "reply");
  EXPECT_EQ(pair.b.program.look(), "request");
  ASSERT_TRUE(pair.a.agent.confirm(pair.at_a, {}, pair.now));
  pair.carry();
  EXPECT_EQ(pair.b.program.look(), "established");
}

TEST(Agent, EndsAnUndecidedRequestWhoseRequesterIsSilent) {
  Pair pair;
  pair.ask();
  pair.carry();
  pair.a.agent.disconnect(pair.at_a, {}, pair.now);
  pair.lose();
  pair.pass(seconds(31), true);
  EXPECT_EQ(pair.b.program.look(), "request timed out");
}

TEST(Agent, RefusesCallsForConnectionsThatHaveEnded) {
  Pair pair;
  pair.ask();
  pair.carry();
  pair.a.agent.disconnect(pair.at_a, {}, pair.now);
  pair.carry();
  pair.accept();
  EXPECT_EQ(pair.accepted.error().code, ENOENT);
  EXPECT_EQ(pair.a.agent.confirm(pair.at_a, {}, pair.now).error().code, ENOENT);
}

TEST(Agent, ReportsNothingOfAListenerThatIsStopped) {
  Pair pair;
  pair.ask();
  pair.carry();
  pair.a.agent.disconnect(pair.at_a, {}, pair.now);
  pair.ask();
  for (const Sent& each : std::exchange(pair.a.host.sent, {})) {
    pair.b.agent.take(pair.a.here, each.bytes, pair.now);
  }
  EXPECT_TRUE(pair.b.agent.has_events());
  pair.b.agent.stop(pair.listener, pair.now);
  EXPECT_FALSE(pair.b.agent.has_events());
}

TEST(Agent, AbandonsAConnectionWithoutAMessage) {
  Pair pair;
  pair.establish();
  pair.a.agent.abandon(pair.at_a, pair.now);
  EXPECT_TRUE(pair.a.host.sent.empty());
  EXPECT_EQ(pair.a.agent.connections(), 0);
  pair.b.agent.disconnect(pair.at_b, {}, pair.now);
  pair.carry();
  EXPECT_EQ(pair.a.program.look(), "");
  EXPECT_EQ(pair.b.agent.connections(), 0);
}

TEST(Agent, RepeatsTheReplyOfAConnectionThatAPacketHasEstablished) {
  Pair pair;
  pair.ask();
  const Bytes req = pair.a.host.sent.at(0).bytes;
  pair.carry();
  pair.accept();
  pair.lose();
  pair.b.agent.established(pair.at_b, pair.now);
  pair.b.agent.take(pair.a.here, req, pair.now);
  EXPECT_EQ(pair.b.host.look(), "REP");
  pair.pass(seconds(8), true);
  pair.b.agent.take(pair.a.here, req, pair.now);
  EXPECT_EQ(pair.b.host.look(), "");
  EXPECT_EQ(pair.b.agent.connections(), 1);
}

// The REQ goes to port 4791; the process that it is relayed to answers from its own port.
TEST(Agent, TakesTheAnswerToARelayedRequestFromAnotherPortOfTheHost) {
  Pair pair;
  ConnectRequest request = pair.request();
  request.to = remote(2, 4791);
  const auto id = pair.a.agent.connect(request, pair.a.program, nullptr, pair.now).value();
  const Bytes req = pair.a.host.sent.at(0).bytes;
  pair.lose();
  pair.b.agent.take(pair.a.here, req, pair.now);
  pair.b.agent.deliver();
  pair.accept();
  const Bytes rep = pair.b.host.sent.at(0).bytes;
  pair.lose();
  pair.a.agent.take(remote(3), rep, pair.now);
  EXPECT_FALSE(pair.a.agent.has_events()) << "another host";
  pair.a.agent.take(pair.b.here, rep, pair.now);
  pair.a.agent.deliver();
  EXPECT_EQ(pair.a.program.events.at(0).event.remote, pair.b.here);
  ASSERT_TRUE(pair.a.agent.confirm(id, {}, pair.now));
  EXPECT_EQ(pair.a.host.sent.at(0).to, pair.b.here);
}

TEST(Agent, TakesAnyTimes) {
  constexpr auto kForever = std::chrono::nanoseconds::max();
  AgentOptions options = options_of(2);
  options.packets = {{kForever, kForever, kForever}, kForever};
  options.time_wait = options.watch.probe_after = options.peer_timeout =
      options.watch.suspect_timeout = kForever;
  Pair pair(options);
  ConnectRequest request = pair.request();
  request.repeats = {std::chrono::nanoseconds(0), std::chrono::nanoseconds(0), seconds(1)};
  ASSERT_TRUE(pair.a.agent.connect(request, pair.a.program, nullptr, pair.now));
  pair.pass(seconds(2), true);
  EXPECT_EQ(pair.a.program.look(), "timed out");
  EXPECT_NEAR(static_cast<double>(pair.a.host.count), 1000, 2);
  pair.establish(true);
  pair.b.agent.unreachable(pair.a.here, pair.now);
  pair.b.agent.disconnect(pair.at_b, {}, pair.now);
  pair.pass(seconds(100));
  EXPECT_EQ(pair.b.agent.entries(), 1) << "its id rests forever";
}

TEST(Agent, DropsMalformedMessagesAndCountsThem) {
  Pair pair;
  const auto good = wire::write_cm({0, 1, 0, wire::CmDrep()});
  const auto changed = [&](std::size_t at, int value) {
    auto bad = good;
    bad[at] = static_cast<std::byte>(value);
    return Bytes(bad.begin(), bad.end());
  };
  const std::vector<Bytes> bad = {{},
                                  Bytes(good.begin(), good.end() - 1),
                                  Bytes(513),
                                  changed(0, 2),
                                  changed(1, 3),
                                  changed(2, 1),
                                  changed(3, 1),
                                  changed(17, 0x30)};
  for (const Bytes& each : bad) EXPECT_FALSE(pair.b.agent.take(pair.a.here, each, pair.now));
  EXPECT_EQ(pair.b.stats.of(Stat::kMalformedPackets), bad.size());
  EXPECT_TRUE(pair.b.agent.take(pair.a.here, good, pair.now));
  EXPECT_EQ(pair.b.stats.of(Stat::kConnectionMessages), 1);
  EXPECT_EQ(pair.b.host.count, 0);
}

TEST(Agent, GivesEachNumberOnceUntilNoneIsFree) {
  Pair pair;
  std::set<ConnectionId> ids;
  ConnectRequest request = pair.request();
  for (int i = 0; i < 65535; ++i) {
    ids.insert(pair.a.agent.connect(request, pair.a.program, nullptr, pair.now).value());
    pair.a.host.sent.clear();
  }
  EXPECT_EQ(ids.size(), 65535);
  EXPECT_EQ(pair.a.agent.connect(request, pair.a.program, nullptr, pair.now).error().code, EUSERS);
  EXPECT_FALSE(ids.contains(0));
  EXPECT_EQ(*ids.begin() >> 16, 40000);
}

TEST(Agent, RejectsRequestsWhenNoIdIsFree) {
  Pair pair;
  for (int i = 0; i < 65535; ++i) {
    ASSERT_TRUE(pair.b.agent.connect(pair.request(), pair.b.program, nullptr, pair.now));
    pair.b.host.sent.clear();
  }
  pair.ask();
  pair.carry();
  const auto& rej = std::get<wire::CmRej>(pair.a.program.events.at(0).mad->message);
  EXPECT_EQ(rej.reason, wire::CmReason::kNoResources);
}

TEST(Agent, LetsAnIdRest) {
  Pair pair;
  pair.establish();
  pair.a.agent.disconnect(pair.at_a, {}, pair.now);
  pair.carry();
  EXPECT_EQ(pair.a.agent.entries(), 1);
  EXPECT_EQ(pair.a.agent.connections(), 0);
  for (int i = 0; i < 65534; ++i) {
    const auto id = pair.a.agent.connect(pair.request(), pair.a.program, nullptr, pair.now);
    ASSERT_TRUE(id);
    EXPECT_NE(id.value(), pair.at_a);
    pair.a.host.sent.clear();
  }
  pair.pass(milliseconds(101), true);
  EXPECT_EQ(pair.a.agent.connect(pair.request(), pair.a.program, nullptr, pair.now).value(),
            pair.at_a);
}

}  // namespace
}  // namespace weft::cm
