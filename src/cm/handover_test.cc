// SPDX-License-Identifier: BSD-2-Clause
// How does a port answer a request that another port of its host has received?
#include <gtest/gtest.h>

#include "test_support.h"

namespace weft::cm {
namespace {

using namespace testing;

AgentOptions options_of_port(std::uint16_t port) {
  AgentOptions options = options_of(2);
  options.port = port;
  options.guid += port;
  return options;
}

// A requester, a listener, and another port of the listener's host.
struct Trio {
  Trio() {
    acceptor.here = remote(2, 40001);
    const auto id = listener.agent.listen(kService, 16, listener.program, nullptr);
    EXPECT_TRUE(id);
  }

  ConnectRequest request() const {
    ConnectRequest request;
    request.to = listener.here;
    request.req.service = kService;
    request.req.qpn = 0x9C4002;
    return request;
  }
  void ask(const ConnectRequest& request) {
    at_requester = requester.agent.connect(request, requester.program, nullptr, now).value();
    req = requester.host.sent.at(0).bytes;
  }
  void ask() { ask(request()); }
  wire::CmMad asked() const { return *wire::parse_cm(req); }
  // Delivers messages until there is none. Those to other addresses are lost.
  void carry() {
    Station* const all[] = {&requester, &listener, &acceptor};
    const auto has_sent = [](Station* each) { return !each->host.sent.empty(); };
    while (std::any_of(std::begin(all), std::end(all), has_sent)) {
      for (Station* from : all) {
        for (const Sent& each : std::exchange(from->host.sent, {})) {
          for (Station* to : all) {
            if (to->here == each.to) to->agent.take(from->here, each.bytes, now);
          }
        }
      }
      for (Station* each : all) each->agent.deliver();
    }
  }
  // The acceptor adopts the request, and the listener forwards it.
  void hand_over() {
    const Remote from = requester.here;
    at_acceptor = acceptor.agent.adopt(from, asked(), acceptor.program, &at_acceptor, now).value();
    at_listener = listener.program.events.at(0).event.id;
    const Status forwarded = listener.agent.forward(at_listener, now);
    EXPECT_TRUE(forwarded);
  }
  void accept(AcceptRequest reply = {}) {
    reply.rep.qpn = 0x9C4003;
    const Status accepted =
        acceptor.agent.accept(at_acceptor, reply, acceptor.program, &at_acceptor, now);
    EXPECT_TRUE(accepted);
  }

  Station requester{1};
  Station listener{2, options_of_port(40000)};
  Station acceptor{2, options_of_port(40001)};
  Time now{seconds(1000)};
  Bytes req;
  ConnectionId at_requester = 0;
  ConnectionId at_listener = 0;
  ConnectionId at_acceptor = 0;
};

TEST(Handover, AnotherPortAcceptsARequestByThreeMessages) {
  Trio trio;
  trio.ask();
  trio.carry();
  trio.hand_over();
  EXPECT_FALSE(trio.acceptor.agent.has_events()) << "a request that it was told of by its caller";
  trio.accept();
  trio.carry();
  EXPECT_EQ(trio.requester.program.events.at(0).event.remote, trio.acceptor.here);
  EXPECT_EQ(trio.requester.program.look(), "reply");
  ASSERT_TRUE(trio.requester.agent.confirm(trio.at_requester, {}, trio.now));
  trio.carry();
  EXPECT_EQ(trio.acceptor.program.events.at(0).event.context, &trio.at_acceptor);
  EXPECT_EQ(trio.acceptor.program.look(), "established");
  EXPECT_EQ(trio.listener.program.look(), "request");
  EXPECT_EQ(trio.requester.host.count, 2) << "REQ, RTU";
  EXPECT_EQ(trio.listener.host.count, 0);
  EXPECT_EQ(trio.acceptor.host.count, 1) << "REP";
  trio.acceptor.agent.disconnect(trio.at_acceptor, {}, trio.now);
  trio.carry();
  EXPECT_EQ(trio.requester.program.look(), "disconnected");
}

TEST(Handover, TheMraOfAListenerThatClosesCountsAmongThePacketsOfTheRequest) {
  for (const bool delayed : {false, true}) {
    Trio trio;
    trio.ask();
    trio.carry();
    trio.hand_over();
    AcceptRequest reply;
    reply.delayed = delayed;
    trio.accept(reply);
    while (trio.acceptor.agent.due() != Time::max()) {
      trio.acceptor.agent.advance(trio.acceptor.agent.due());
    }
    EXPECT_EQ(trio.acceptor.host.count, delayed ? 3 : 4);
  }
}

// Its listener hears of each that became a connection, and takes as many further ones.
TEST(Handover, OfManyRequestsIsNoFloodWhenConnectionsComeOfThem) {
  AgentOptions options = options_of_port(40000);
  options.requests = {4, 1};
  Station listener(2, options);
  Station acceptor(2, options_of_port(40001));
  const Time now{seconds(1000)};
  ASSERT_TRUE(listener.agent.listen(kService, 16, listener.program, nullptr));
  for (std::uint32_t i = 1; i <= 100; ++i) {
    wire::CmReq req;
    req.local_id = req.qpn = i;
    req.service = kService;
    const wire::CmMad mad{0, i, 0, req};
    for (int copy = 0; copy < 2; ++copy) listener.take(spoofed(i), mad, now);
    ASSERT_EQ(listener.program.events.size(), 1) << i;
    ASSERT_TRUE(listener.agent.forward(listener.program.events.at(0).event.id, now));
    listener.program.events.clear();
    listener.take(spoofed(i), mad, now);
    const auto id = acceptor.agent.adopt(spoofed(i), mad, acceptor.program, nullptr, now);
    AcceptRequest reply;
    reply.rep.qpn = i;
    reply.credits = listener.agent.credits();
    ASSERT_TRUE(acceptor.agent.accept(id.value(), reply, acceptor.program, nullptr, now));
    acceptor.take(spoofed(i), {0, i, 0, wire::CmRtu{i, id.value(), {}}}, now);
  }
  EXPECT_EQ(listener.stats.of(Stat::kRequestsHeldBack), 0);
  EXPECT_EQ(acceptor.agent.connections(), 100);
}

TEST(Handover, AnotherPortRejectsARequest) {
  Trio trio;
  trio.ask();
  trio.carry();
  trio.hand_over();
  ASSERT_TRUE(trio.acceptor.agent.reject(trio.at_acceptor, wire::CmReason::kConsumer,
                                         bytes_of("no"), trio.now));
  trio.carry();
  EXPECT_EQ(trio.requester.program.look(), "rejected");
  EXPECT_EQ(trio.acceptor.agent.connections(), 0);
}

TEST(Handover, EachMessageNamesTheConnectionThatItBelongsTo) {
  Trio trio;
  trio.ask();
  EXPECT_EQ(trio.requester.host.sent.at(0).id, trio.at_requester);
  trio.carry();
  trio.hand_over();
  trio.accept();
  EXPECT_EQ(trio.acceptor.host.sent.at(0).id, trio.at_acceptor);
  trio.carry();
  ASSERT_TRUE(trio.requester.agent.confirm(trio.at_requester, {}, trio.now));
  EXPECT_EQ(trio.requester.host.sent.at(0).id, trio.at_requester) << "RTU";
  trio.carry();
  trio.requester.agent.disconnect(trio.at_requester, {}, trio.now);
  EXPECT_EQ(trio.requester.host.sent.at(0).id, trio.at_requester) << "DREQ";
  trio.acceptor.agent.take(trio.requester.here, trio.requester.host.sent.at(0).bytes, trio.now);
  EXPECT_EQ(trio.acceptor.host.sent.at(0).id, trio.at_acceptor) << "DREP";
  wire::CmDreq unknown;
  unknown.local_id = 1;
  trio.listener.take(trio.requester.here, {0, 5, 0, unknown}, trio.now);
  EXPECT_EQ(trio.listener.host.sent.at(0).id, 0) << "no connection stands behind it";
}

TEST(Handover, AForwardedRequestDrawsNothingMore) {
  Trio trio;
  trio.ask();
  trio.carry();
  trio.hand_over();
  EXPECT_EQ(trio.listener.agent.connections(), 0);
  EXPECT_EQ(trio.listener.agent.forward(trio.at_listener, trio.now).error().code, ENOENT);
  for (int repetitions = 0; repetitions < 3; ++repetitions) {
    trio.now += seconds(29);
    trio.listener.agent.advance(trio.now);
    trio.listener.agent.take(trio.requester.here, trio.req, trio.now);
    EXPECT_EQ(trio.listener.host.count, 0);
    EXPECT_FALSE(trio.listener.agent.has_events());
  }
  trio.now += seconds(30);
  trio.listener.agent.advance(trio.now);
  EXPECT_EQ(trio.listener.agent.entries(), 0);
}

TEST(Handover, AForwardedRequestLeavesRoomInTheBacklog) {
  Trio trio;
  for (unsigned i = 0; i < 100; ++i) {
    ConnectRequest request = trio.request();
    request.req.qpn += i;
    trio.ask(request);
    trio.carry();
    trio.hand_over();
    EXPECT_EQ(trio.listener.program.look(), "request") << i;
  }
}

TEST(Handover, TheRequesterWithdrawsAForwardedRequestSilently) {
  Trio trio;
  trio.ask();
  trio.carry();
  trio.hand_over();
  trio.requester.agent.disconnect(trio.at_requester, {}, trio.now);
  trio.carry();
  EXPECT_EQ(trio.listener.program.look(), "request");
  EXPECT_EQ(trio.listener.host.count, 0);
}

// Its REJ went to the listener, as nothing had come from the acceptor.
TEST(Handover, AWithdrawnRequestRejectsTheReplyOfAnotherPort) {
  Trio trio;
  trio.ask();
  trio.carry();
  trio.requester.agent.disconnect(trio.at_requester, {}, trio.now);
  trio.requester.host.sent.clear();
  trio.hand_over();
  trio.accept();
  trio.carry();
  EXPECT_EQ(trio.acceptor.program.look(), "withdrawn");
}

TEST(Handover, AdoptsOnlyARequestThatIsNotKnown) {
  Trio trio;
  trio.ask();
  trio.carry();
  trio.hand_over();
  wire::CmMad mad = trio.asked();
  const auto adopt = [&] {
    return trio.acceptor.agent.adopt(trio.requester.here, mad, trio.acceptor.program, nullptr,
                                     trio.now);
  };
  EXPECT_EQ(adopt().error().code, EALREADY) << "the same request";
  mad.transaction += 1;
  EXPECT_EQ(adopt().error().code, EALREADY) << "its communication id";
  auto& req = std::get<wire::CmReq>(mad.message);
  req.local_id += 1;
  EXPECT_EQ(adopt().error().code, EALREADY) << "its queue pair";
  req.qpn += 1;
  EXPECT_TRUE(adopt());
  req.local_id = 0;
  EXPECT_EQ(adopt().error().code, EINVAL) << "no communication id";
  mad.message = wire::CmRtu();
  EXPECT_EQ(adopt().error().code, EINVAL) << "no REQ";
}

TEST(Handover, AdoptsNoneWhenNoIdIsFree) {
  Trio trio;
  trio.ask();
  Agent& agent = trio.acceptor.agent;
  for (int i = 0; i < 65535; ++i) {
    ASSERT_TRUE(agent.connect(trio.request(), trio.acceptor.program, nullptr, trio.now));
    trio.acceptor.host.sent.clear();
  }
  const auto id =
      agent.adopt(trio.requester.here, trio.asked(), trio.acceptor.program, nullptr, trio.now);
  EXPECT_EQ(id.error().code, EUSERS);
}

// The REQ has come once: it would not come again after the suspicion.
TEST(Handover, AnAdoptedRequestStartsProbesOfOtherInstancesAtItsAddress) {
  Trio trio;
  ConnectRequest request = trio.request();
  request.watched = true;
  trio.ask(request);
  trio.carry();
  trio.hand_over();
  AcceptRequest reply;
  reply.watched = true;
  trio.accept(reply);
  trio.acceptor.agent.established(trio.at_acceptor, trio.now);
  trio.acceptor.host.look();
  wire::CmMad mad = trio.asked();
  auto& req = std::get<wire::CmReq>(mad.message);
  req.ca_guid += 1;
  mad.transaction += 1;
  const auto id =
      trio.acceptor.agent.adopt(trio.requester.here, mad, trio.acceptor.program, nullptr, trio.now);
  EXPECT_TRUE(id);
  EXPECT_EQ(trio.acceptor.host.look(), "LAP");
}

TEST(Handover, AnAdoptedRequestEndsWithItsRequester) {
  Trio trio;
  trio.ask();
  trio.carry();
  trio.hand_over();
  const Sent withdrawal = [&] {
    trio.requester.agent.disconnect(trio.at_requester, {}, trio.now);
    return trio.requester.host.sent.at(0);
  }();
  trio.acceptor.take(trio.requester.here, withdrawal.mad, trio.now);
  EXPECT_EQ(trio.acceptor.program.look(), "withdrawn");
  Trio silent;
  silent.ask();
  silent.carry();
  silent.hand_over();
  silent.now += seconds(30);
  silent.acceptor.agent.advance(silent.now);
  silent.acceptor.agent.deliver();
  EXPECT_EQ(silent.acceptor.program.look(), "timed out");
}

TEST(Handover, DisconnectingRejectsAnAdoptedRequest) {
  Trio trio;
  trio.ask();
  trio.carry();
  trio.hand_over();
  trio.acceptor.agent.disconnect(trio.at_acceptor, {}, trio.now);
  trio.carry();
  EXPECT_EQ(trio.requester.program.look(), "rejected");
}

// The addresses of the messages since the last look, which are gone then.
std::string ports(RecordingHost& host) {
  std::string text;
  for (const Sent& each : std::exchange(host.sent, {})) {
    text += (text.empty() ? "" : " ") + std::to_string(each.to.address.port());
  }
  return text;
}

// A requester that asks port 4791 of the host, too.
struct TwoPlaces : Trio {
  TwoPlaces() {
    ConnectRequest both = request();
    both.other = other;
    both.ends_unreachable = true;
    ask(both);
    requester.host.sent.clear();
  }
  void pass(std::chrono::nanoseconds duration) {
    const Time until = now + duration;
    while (requester.agent.due() <= until) {
      now = std::max(now, requester.agent.due());
      requester.agent.advance(now);
    }
    now = until;
    requester.agent.deliver();
  }
  void report(const Remote& place) {
    requester.agent.unreachable(place, now);
    requester.agent.deliver();
  }
  void be_asked_to_wait() {
    wire::CmMra mra;
    mra.remote_id = at_requester;
    mra.service_timeout = 12;
    requester.take(listener.here, {0, wire::parse_cm(req)->transaction, 0, mra}, now);
  }

  const Remote other = remote(2, 4791);
};

TEST(TwoPlaces, AskTheOtherOneWhenNothingAnswersInTime) {
  TwoPlaces places;
  places.pass(milliseconds(99));
  EXPECT_EQ(ports(places.requester.host), "40000 40000 40000 40000 40000");
  places.pass(milliseconds(1));
  EXPECT_EQ(ports(places.requester.host), "40000 4791");
  places.pass(milliseconds(200));
  EXPECT_EQ(ports(places.requester.host), "40000 4791");
  EXPECT_EQ(places.requester.program.look(), "");
}

TEST(TwoPlaces, AskTheOtherOneAtOnceWhenTheFirstIsUnreachable) {
  TwoPlaces places;
  places.report(remote(3));
  EXPECT_EQ(ports(places.requester.host), "") << "another host";
  places.report(places.listener.here);
  EXPECT_EQ(ports(places.requester.host), "4791");
  places.report(places.listener.here);
  EXPECT_EQ(ports(places.requester.host), "") << "once";
  places.pass(milliseconds(2));
  EXPECT_EQ(ports(places.requester.host), "4791 40000") << "the report may be forged";
}

TEST(TwoPlaces, EndWhenBothAreUnreachable) {
  TwoPlaces places;
  places.report(places.listener.here);
  EXPECT_EQ(places.requester.program.look(), "");
  places.report(places.other);
  EXPECT_EQ(places.requester.program.look(), "unreachable");
  EXPECT_EQ(places.requester.agent.connections(), 0);
  places.report(places.other);
  EXPECT_EQ(places.requester.program.look(), "") << "once";
  places.pass(seconds(8));
  EXPECT_EQ(places.requester.agent.entries(), 0);
}

TEST(TwoPlaces, EndByTheFirstReportWhenThereIsOne) {
  Trio trio;
  ConnectRequest request = trio.request();
  request.ends_unreachable = true;
  trio.ask(request);
  trio.requester.agent.unreachable(trio.listener.here, trio.now);
  trio.requester.agent.deliver();
  EXPECT_EQ(trio.requester.program.look(), "unreachable");
}

TEST(TwoPlaces, AreAskedOnWithoutEnd) {
  Trio trio;
  ConnectRequest request = trio.request();
  request.other = remote(2, 4791);
  trio.ask(request);
  trio.requester.agent.unreachable(trio.listener.here, trio.now);
  trio.requester.agent.unreachable(*request.other, trio.now);
  trio.requester.agent.deliver();
  EXPECT_EQ(trio.requester.program.look(), "");
  EXPECT_EQ(trio.requester.agent.connections(), 1);
}

TEST(TwoPlaces, AreOneOnceItHasAnswered) {
  TwoPlaces places;
  places.be_asked_to_wait();
  places.report(places.listener.here);
  places.report(places.other);
  EXPECT_EQ(places.requester.program.look(), "");
  places.pass(seconds(1));
  const std::string asked = ports(places.requester.host);
  EXPECT_NE(asked.find("40000"), std::string::npos);
  EXPECT_EQ(asked.find("4791"), std::string::npos);
}

TEST(TwoPlaces, EndWhenAListenerThatHasAnsweredIsUnreachableLater) {
  TwoPlaces places;
  places.be_asked_to_wait();
  places.report(places.listener.here);
  EXPECT_EQ(places.requester.program.look(), "") << "no REQ was sent since";
  places.pass(seconds(1));
  places.report(places.other);
  EXPECT_EQ(places.requester.program.look(), "");
  places.report(places.listener.here);
  EXPECT_NE(places.requester.program.look(), "");
}

TEST(TwoPlaces, BothHearOfAWithdrawal) {
  TwoPlaces places;
  places.pass(milliseconds(100));
  places.requester.host.sent.clear();
  places.requester.agent.disconnect(places.at_requester, {}, places.now);
  EXPECT_EQ(ports(places.requester.host), "40000 4791");
  places.pass(seconds(9));
  EXPECT_EQ(places.requester.host.count, 10) << "nothing more";
}

TEST(TwoPlaces, AbandonAnAttemptQuietly) {
  TwoPlaces places;
  places.requester.agent.abandon(places.at_requester, places.now);
  places.report(places.listener.here);
  places.pass(seconds(9));
  EXPECT_EQ(ports(places.requester.host), "");
  EXPECT_EQ(places.requester.program.look(), "");
  EXPECT_EQ(places.requester.agent.entries(), 0);
}

TEST(TwoPlaces, AreOfOneHost) {
  Trio trio;
  ConnectRequest request = trio.request();
  request.other = remote(3, 4791);
  const auto of_another = [&] {
    return trio.requester.agent.connect(request, trio.requester.program, nullptr, trio.now);
  };
  EXPECT_EQ(of_another().error().code, EINVAL);
  request.other = {remote(2, 4791).address, Carrier::kMailbox};
  EXPECT_EQ(of_another().error().code, EINVAL);
  EXPECT_EQ(trio.requester.agent.entries(), 0);
}

}  // namespace
}  // namespace weft::cm
