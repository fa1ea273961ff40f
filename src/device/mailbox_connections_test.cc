// SPDX-License-Identifier: BSD-2-Clause
// How are connections within the host made, and how do they end?
#include "mailbox_connections.h"

#include <cerrno>
#include <chrono>
#include <thread>

#include "connections_support.h"

namespace weft::device {
namespace {

using namespace mailbox_testing;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST_F(MailboxConnectionsTest, ARequestAndItsAcceptanceCarryUpTo256Bytes) {
  for (const std::size_t length : {0, 1, 256}) {
    const Bytes data(length, std::byte{'x'});
    Program& one = add(*requester);
    Program& other = add(*acceptor);
    connect(one, other, data);
    const link::ConnectionRequest& received = listener->requests.back().second;
    EXPECT_EQ(received.data, data);
    EXPECT_EQ(received.peer, requester->address);
    EXPECT_EQ(received.asked, listener->address);
    EXPECT_TRUE(received.within_host);
    expect_data_flow(one, other);
  }
  EXPECT_EQ(requester->refusals + acceptor->refusals + listener->refusals, 0);
}

TEST_F(MailboxConnectionsTest, ARejectionCarriesUpTo256Bytes) {
  for (const std::size_t length : {0, 1, 256}) {
    const std::string data(length, 'x');
    asking.log.clear();
    ASSERT_TRUE(request(asking).ok());
    listener->poll();
    listener->connections->reject(listener->requests.back().first, bytes_of(data));
    requester->poll();
    EXPECT_THAT(asking.log, ElementsAre(failure(ECONNREFUSED, data)));
    expect_nothing_left();
  }
}

TEST_F(MailboxConnectionsTest, MoreThan256BytesAreInvalid) {
  const Bytes data(257);
  EXPECT_EQ(request(asking, data).error().code, EINVAL);
  ASSERT_TRUE(request(asking).ok());
  listener->poll();
  EXPECT_EQ(accept(accepting, data).error().code, EINVAL);
  EXPECT_TRUE(accept(accepting).ok()) << "the request lives on";
  settle();
  EXPECT_THAT(asking.log, ElementsAre("connected "));
}

TEST_F(MailboxConnectionsTest, WithoutAPortNothingIsAsked) {
  EXPECT_EQ(requester->connections->request(os::loopback(7999), {}, asking).error().code, ENOENT);
  EXPECT_THAT(asking.log, IsEmpty());
  expect_nothing_left();
}

TEST_F(MailboxConnectionsTest, APortThatDoesNotListenRefuses) {
  ASSERT_TRUE(requester->connections->request(acceptor->address, {}, asking).ok());
  acceptor->poll();
  requester->poll();
  EXPECT_THAT(asking.log, ElementsAre(failure(ECONNREFUSED)));
  expect_nothing_left();
}

TEST_F(MailboxConnectionsTest, AListenerThatClosesUnreadRefuses) {
  ASSERT_TRUE(request(asking).ok());
  listener.reset();
  requester->check();
  EXPECT_THAT(asking.log, ElementsAre(failure(ECONNREFUSED)));
  expect_nothing_left();
}

TEST_F(MailboxConnectionsTest, AListenerThatDoesNotReadIsGivenUp) {
  const auto begin = std::chrono::steady_clock::now();
  ASSERT_TRUE(request(asking).ok());
  EXPECT_TRUE(check_until(*requester, [&] { return !asking.log.empty(); }));
  EXPECT_THAT(asking.log, ElementsAre(failure(ETIMEDOUT)));
  EXPECT_GE(std::chrono::steady_clock::now() - begin, requester->options.request_timeout / 2);
  listener->poll();
  settle();
  ASSERT_THAT(listener->withdrawals.size(), listener->requests.size());
  expect_nothing_left();
}

TEST_F(MailboxConnectionsTest, AListenerThatHasReadMayTakeItsTime) {
  ASSERT_TRUE(request(asking).ok());
  listener->poll();
  const auto end = std::chrono::steady_clock::now() + 2 * requester->options.request_timeout;
  EXPECT_TRUE(check_until(*requester, [&] { return std::chrono::steady_clock::now() >= end; }));
  EXPECT_THAT(asking.log, IsEmpty());
  ASSERT_TRUE(accept(accepting).ok());
  settle();
  EXPECT_THAT(asking.log, ElementsAre("connected "));
  EXPECT_THAT(accepting.log, ElementsAre("connected "));
}

// An endpoint that was opened for the request has it, and may accept.
TEST_F(MailboxConnectionsTest, AForwardedRequestOutlivesItsListener) {
  ASSERT_TRUE(request(asking).ok());
  listener->poll();
  requester->check();
  const auto [number, received] = listener->requests.at(0);
  listener->connections->forward(number);
  listener.reset();
  requester->check();
  EXPECT_THAT(asking.log, IsEmpty());
  ASSERT_TRUE(acceptor->connections->accept(received, {}, accepting).ok());
  settle();
  EXPECT_THAT(asking.log, ElementsAre("connected "));
  EXPECT_THAT(accepting.log, ElementsAre("connected "));
  expect_data_flow(asking, accepting);
}

TEST_F(MailboxConnectionsTest, AForwardedRequestThatNothingAnswersFailsAfterItsListener) {
  ASSERT_TRUE(request(asking).ok());
  listener->poll();
  requester->check();
  listener->connections->forward(listener->requests.at(0).first);
  listener.reset();
  EXPECT_TRUE(check_until(*requester, [&] { return !asking.log.empty(); }));
  EXPECT_THAT(asking.log, ElementsAre(failure(ETIMEDOUT)));
  expect_nothing_left();
}

TEST_F(MailboxConnectionsTest, AnyPortMayTurnARequestDown) {
  ASSERT_TRUE(request(asking).ok());
  listener->poll();
  const auto& [number, received] = listener->requests.at(0);
  listener->connections->forward(number);
  acceptor->connections->reject(received);
  requester->poll();
  EXPECT_THAT(asking.log, ElementsAre(failure(ECONNREFUSED)));
  expect_nothing_left();
}

TEST_F(MailboxConnectionsTest, ARequestIsAcceptedOnce) {
  ASSERT_TRUE(request(asking).ok());
  listener->poll();
  ASSERT_TRUE(accept(accepting).ok());
  Program& late = add(*acceptor);
  EXPECT_EQ(acceptor->connections->accept(listener->requests[0].second, {}, late).error().code,
            ENOENT);
  settle();
  EXPECT_THAT(late.log, IsEmpty());
  expect_data_flow(asking, accepting);
}

TEST_F(MailboxConnectionsTest, ARequesterWithdrawsBeforeItWasRead) {
  ASSERT_TRUE(request(asking).ok());
  requester->connections->disconnect(asking.number);
  settle();
  EXPECT_EQ(listener->withdrawals.size(), listener->requests.size());
  EXPECT_THAT(asking.log, IsEmpty());
  expect_nothing_left();
}

TEST_F(MailboxConnectionsTest, ARequesterWithdrawsBeforeItWasDecided) {
  ASSERT_TRUE(request(asking).ok());
  listener->poll();
  requester->connections->disconnect(asking.number);
  settle();
  EXPECT_THAT(listener->withdrawals, ElementsAre(listener->requests.at(0).first));
  listener->connections->reject(listener->requests[0].first, {});
  EXPECT_THAT(asking.log, IsEmpty());
  expect_nothing_left();
}

TEST_F(MailboxConnectionsTest, ARequesterThatClosesHasWithdrawn) {
  ASSERT_TRUE(request(asking).ok());
  listener->poll();
  requester.reset();
  settle();
  EXPECT_THAT(listener->withdrawals, ElementsAre(listener->requests.at(0).first));
  EXPECT_EQ(accept(accepting).error().code, ENOENT);
  EXPECT_THAT(accepting.log, IsEmpty());
}

TEST_F(MailboxConnectionsTest, ADecidedRequestIsNotWithdrawn) {
  for (const bool accepted : {true, false}) {
    Program& one = add(*requester);
    Program& other = add(*acceptor);
    ASSERT_TRUE(request(one).ok());
    listener->poll();
    if (accepted) {
      ASSERT_TRUE(accept(other).ok());
    } else {
      listener->connections->reject(listener->requests.back().first, {});
    }
    settle();
  }
  EXPECT_THAT(listener->withdrawals, IsEmpty());
}

TEST_F(MailboxConnectionsTest, AnAcceptorHearsThatItsRequesterIsGone) {
  ASSERT_TRUE(request(asking).ok());
  listener->poll();
  ASSERT_TRUE(accept(accepting).ok());
  requester.reset();
  acceptor->check();
  EXPECT_THAT(accepting.log, ElementsAre(failure(ECONNABORTED)));
  expect_nothing_left();
}

TEST_F(MailboxConnectionsTest, AnAcceptorHearsThatItsRequesterHasWithdrawn) {
  ASSERT_TRUE(request(asking).ok());
  listener->poll();
  ASSERT_TRUE(accept(accepting).ok());
  requester->connections->disconnect(asking.number);
  settle();
  EXPECT_THAT(asking.log, IsEmpty());
  EXPECT_THAT(accepting.log, ElementsAre(failure(ECONNABORTED)));
  expect_nothing_left();
}

TEST_F(MailboxConnectionsTest, AnAcceptorGivesUpARequesterThatDoesNotConfirm) {
  acceptor->options.peer_timeout = std::chrono::milliseconds(200);
  const auto begin = std::chrono::steady_clock::now();
  ASSERT_TRUE(request(asking).ok());
  listener->poll();
  ASSERT_TRUE(accept(accepting).ok());
  EXPECT_TRUE(check_until(*acceptor, [&] { return !accepting.log.empty(); }));
  EXPECT_THAT(accepting.log, ElementsAre(failure(ECONNABORTED)));
  EXPECT_GE(std::chrono::steady_clock::now() - begin, acceptor->options.peer_timeout / 2);
  settle();
  EXPECT_THAT(asking.log, ElementsAre("connected ", "ended"));
  asking.flow.reset();
  expect_nothing_left();
}

TEST_F(MailboxConnectionsTest, AConfirmationThatIsReadAfterItsDeadlineCounts) {
  acceptor->options.peer_timeout = std::chrono::milliseconds(20);
  ASSERT_TRUE(request(asking).ok());
  listener->poll();
  ASSERT_TRUE(accept(accepting).ok());
  requester->poll();
  std::this_thread::sleep_for(2 * acceptor->options.peer_timeout);
  acceptor->check();
  EXPECT_THAT(accepting.log, ElementsAre("connected "));
  expect_data_flow(asking, accepting);
}

// More than one poll takes in.
TEST_F(MailboxConnectionsTest, ManyConfirmationsThatAreReadAfterTheirDeadlineCount) {
  acceptor->options.peer_timeout = std::chrono::milliseconds(0);
  std::vector<Program*> accepted;
  for (int i = 0; i < 100; ++i) {
    ASSERT_TRUE(request(add(*requester)).ok());
    listener->poll();
    ASSERT_TRUE(accept(*accepted.emplace_back(&add(*acceptor))).ok());
    requester->poll();
  }
  for (int i = 0; i < 100; ++i) acceptor->check();
  for (const Program* each : accepted) EXPECT_THAT(each->log, ElementsAre("connected "));
}

TEST_F(MailboxConnectionsTest, AnAcceptorMayGoBeforeItsAnswerIsRead) {
  ASSERT_TRUE(request(asking).ok());
  listener->poll();
  ASSERT_TRUE(accept(accepting).ok());
  acceptor.reset();
  EXPECT_TRUE(check_until(*requester, [&] {
    requester->poll();
    return !asking.log.empty();
  }));
  EXPECT_THAT(asking.log, ElementsAre(failure(ECONNRESET)));
  expect_nothing_left();
}

TEST_F(MailboxConnectionsTest, AnAcceptorThatEndsBeforeTheConfirmationEndsTheConnection) {
  ASSERT_TRUE(request(asking).ok());
  listener->poll();
  ASSERT_TRUE(accept(accepting).ok());
  disconnect(*acceptor, accepting);
  settle();
  EXPECT_THAT(asking.log, ::testing::AnyOf(ElementsAre("connected ", "ended"),
                                           ElementsAre(failure(ECONNREFUSED)),
                                           ElementsAre(failure(ECONNRESET))));
  EXPECT_THAT(accepting.log, IsEmpty());
  asking.flow.reset();
  expect_nothing_left();
}

TEST_F(MailboxConnectionsTest, AnAcceptorMayEndWhileTheConfirmationIsUnderWay) {
  ASSERT_TRUE(request(asking).ok());
  listener->poll();
  ASSERT_TRUE(accept(accepting).ok());
  requester->poll();
  disconnect(*acceptor, accepting);
  settle();
  EXPECT_THAT(asking.log, ElementsAre("connected ", "ended"));
  EXPECT_THAT(accepting.log, IsEmpty());
  asking.flow.reset();
  expect_nothing_left();
}

TEST_F(MailboxConnectionsTest, ARequesterMayEndBeforeItsConfirmationIsRead) {
  ASSERT_TRUE(request(asking).ok());
  listener->poll();
  ASSERT_TRUE(accept(accepting).ok());
  requester->poll();
  ASSERT_EQ(asking.send("last words").state, link::Outcome::State::kDone);
  disconnect(*requester, asking);
  settle();
  EXPECT_THAT(accepting.log, ElementsAre("connected ", "last words", "ended"));
  accepting.flow.reset();
  expect_nothing_left();
}

TEST_F(MailboxConnectionsTest, TheEndComesOnceAndAfterTheData) {
  for (const bool by_requester : {true, false}) {
    Program& one = add(*requester);
    Program& other = add(*acceptor);
    connect(one, other);
    Program& ends = by_requester ? one : other;
    Program& hears = by_requester ? other : one;
    ASSERT_EQ(ends.send("first").state, link::Outcome::State::kDone);
    ASSERT_EQ(ends.send("second").state, link::Outcome::State::kDone);
    disconnect(by_requester ? *requester : *acceptor, ends);
    settle();
    EXPECT_THAT(hears.log, ElementsAre("connected ", "first", "second", "ended"));
    EXPECT_THAT(ends.log, ElementsAre("connected ")) << "it knows";
    hears.flow.reset();
    settle();
    EXPECT_EQ(hears.log.size(), 4u);
    expect_nothing_left();
  }
}

// Its flow may be held for a while, by what is pending there.
TEST_F(MailboxConnectionsTest, AnEndIsHeardThoughTheFlowIsStillOpen) {
  for (const bool by_requester : {true, false}) {
    Program& one = add(*requester);
    Program& other = add(*acceptor);
    connect(one, other);
    Party& party = by_requester ? *requester : *acceptor;
    party.connections->disconnect(by_requester ? one.number : other.number);
    settle();
    EXPECT_THAT((by_requester ? other : one).log, ElementsAre("connected ", "ended"))
        << by_requester;
    one.flow.reset();
    other.flow.reset();
    settle();
    EXPECT_THAT((by_requester ? other : one).log, ElementsAre("connected ", "ended"));
  }
  expect_nothing_left();
}

TEST_F(MailboxConnectionsTest, BothEndsMayEndAtOnce) {
  connect();
  disconnect(*requester, asking);
  disconnect(*acceptor, accepting);
  settle();
  EXPECT_THAT(asking.log, ElementsAre("connected "));
  EXPECT_THAT(accepting.log, ElementsAre("connected "));
  expect_nothing_left();
}

TEST_F(MailboxConnectionsTest, TheEndOfAProcessEndsItsConnections) {
  connect();
  ASSERT_EQ(asking.send("last words").state, link::Outcome::State::kDone);
  asking.flow.reset();
  requester.reset();
  settle();
  EXPECT_THAT(accepting.log, ElementsAre("connected ", "last words", "ended"));
  accepting.flow.reset();
  expect_nothing_left();
}

TEST_F(MailboxConnectionsTest, ANumberMeansNothingAfterTheEnd) {
  connect();
  disconnect(*requester, asking);
  settle();
  acceptor->connections->disconnect(accepting.number);
  requester->connections->disconnect(asking.number);
  listener->connections->reject(listener->requests[0].first, {});
  listener->connections->forward(listener->requests[0].first);
  EXPECT_THAT(accepting.log, ElementsAre("connected ", "ended"));
  accepting.flow.reset();
  expect_nothing_left();
}

TEST_F(MailboxConnectionsTest, AUserMayEndWhatItHearsOf) {
  asking.react = [&] { disconnect(*requester, asking); };
  ASSERT_TRUE(request(asking).ok());
  listener->poll();
  ASSERT_TRUE(accept(accepting).ok());
  settle();
  EXPECT_THAT(asking.log, ElementsAre("connected "));
  EXPECT_THAT(accepting.log, ElementsAre("connected ", "ended"));
  accepting.flow.reset();
  expect_nothing_left();
}

TEST_F(MailboxConnectionsTest, AnAcceptorMayEndWhatItHearsOf) {
  accepting.react = [&] { disconnect(*acceptor, accepting); };
  ASSERT_TRUE(request(asking).ok());
  listener->poll();
  ASSERT_TRUE(accept(accepting).ok());
  settle();
  EXPECT_THAT(asking.log, ElementsAre("connected ", "ended"));
  EXPECT_THAT(accepting.log, ElementsAre("connected "));
  asking.flow.reset();
  expect_nothing_left();
}

TEST_F(MailboxConnectionsTest, AUserMayAskAgainWhenAnAttemptHasFailed) {
  asking.react = [&] {
    if (asking.log.size() < 3) {
      EXPECT_TRUE(request(asking).ok());
    }
  };
  ASSERT_TRUE(request(asking).ok());
  for (int i = 0; i < 2; ++i) {
    listener->poll();
    listener->connections->reject(listener->requests.back().first, {});
    requester->poll();
  }
  listener.reset();
  requester->check();
  const std::string refused = failure(ECONNREFUSED);
  EXPECT_THAT(asking.log, ElementsAre(refused, refused, refused));
  expect_nothing_left();
}

TEST_F(MailboxConnectionsTest, AUserMayAskAgainWhenAConnectionHasEnded) {
  connect();
  asking.react = [&] {
    if (asking.log.back() == "ended") {
      EXPECT_TRUE(request(asking).ok());
    }
  };
  disconnect(*acceptor, accepting);
  settle();
  EXPECT_THAT(asking.log, ElementsAre("connected ", "ended"));
  ASSERT_EQ(listener->requests.size(), 2u);
  ASSERT_TRUE(accept(accepting).ok());
  settle();
  expect_data_flow(asking, accepting);
}

TEST_F(MailboxConnectionsTest, OfMoreThanTheBacklogTheOldestEnds) {
  listener->connections->set_backlog(2);
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(request(add(*requester)).ok());
  settle();
  ASSERT_EQ(listener->requests.size(), 3u);
  EXPECT_THAT(listener->withdrawals, ElementsAre(listener->requests[0].first));
}

TEST_F(MailboxConnectionsTest, ASecondListenerOfAPortFindsItTaken) {
  EXPECT_EQ(listener->connections->listen(1, *listener).error().code, EADDRINUSE);
}

TEST_F(MailboxConnectionsTest, FiveHundredConnectionsOfTwoPortsAreSeparate) {
  constexpr int kMany = 500;
  std::vector<std::pair<Program*, Program*>> all;
  for (int i = 0; i < kMany; ++i) {
    all.emplace_back(&add(*requester), &add(*acceptor));
    connect(*all.back().first, *all.back().second);
  }
  for (int i = 0; i < kMany; ++i) {
    ASSERT_EQ(all[i].first->send(std::to_string(i)).state, link::Outcome::State::kDone);
    ASSERT_EQ(all[i].second->send(std::to_string(-i)).state, link::Outcome::State::kDone);
  }
  settle();
  EXPECT_EQ(requester->refusals + acceptor->refusals + listener->refusals, 0);
  for (int i = 0; i < kMany; i += 2) disconnect(*requester, *all[i].first);
  settle();
  for (int i = 0; i < kMany; ++i) {
    if (i % 2 == 0) {
      EXPECT_THAT(all[i].second->log, ElementsAre("connected ", std::to_string(i), "ended"));
      all[i].second->flow.reset();
    } else {
      EXPECT_THAT(all[i].second->log, ElementsAre("connected ", std::to_string(i)));
      EXPECT_THAT(all[i].first->log, ElementsAre("connected ", std::to_string(-i)));
      disconnect(*acceptor, *all[i].second);
    }
  }
  settle();
  for (const auto& [one, other] : all) one->flow.reset();
  expect_nothing_left();
}

}  // namespace
}  // namespace weft::device
