// SPDX-License-Identifier: BSD-2-Clause
// What does one end of a connection do in each state when something happens?
#include "connect/connection.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "test_support.h"

namespace weft::connect {
namespace {

using testing::bytes_of;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using testing::loopback;
using Words = std::vector<std::string>;

constexpr std::uint32_t kPeer = 5;
constexpr Token kTheirs = 77;
constexpr std::chrono::milliseconds kPatience{1000};
const os::Time kStart{std::chrono::hours(1)};

// One end, brought into a state. Tokens of this end are read off what it says.
struct End {
  testing::Scribe border;
  Connection connection{border, kPatience};
  bool asked = false;

  explicit End(ConnectionState state, bool asks = true) : asked(asks) {
    if (state == ConnectionState::kIdle) return;
    if (asks) {
      connection.connect(loopback(2), bytes_of("hello"), kStart);
    } else {
      connection.accept({loopback(3), kTheirs, {}}, bytes_of("welcome"));
    }
    if (state == ConnectionState::kPending) hear(ConnectKind::kPending);
    if (state == ConnectionState::kConnected)
      hear(asks ? ConnectKind::kReply : ConnectKind::kReady);
    if (state == ConnectionState::kEnded) connection.shut_down();
    EXPECT_EQ(connection.state(), state);
    border.log.clear();
  }

  Token origin() const { return border.told.empty() ? kTheirs : border.told[0].origin; }
  Token target() const { return asked || border.told.empty() ? kTheirs : border.told[0].target; }
  void hear(ConnectKind kind, const std::string& data = {}) {
    const ConnectMessage message{kind, origin(), target(), loopback(4), bytes_of(data)};
    connection.hear(kPeer, encode(message));
  }
};

enum class Event {
  kConnect,
  kAccept,
  kShutDown,
  kRequest,
  kPending,
  kReject,
  kReply,
  kReady,
  kFarewell,
  kNonsense,
  kLeft,
  kDied,
  kSoon,
  kLate,
};

void happen(End& end, Event event) {
  Connection& connection = end.connection;
  switch (event) {
    case Event::kConnect:
      connection.connect(loopback(2), {}, kStart);
      return;
    case Event::kAccept:
      connection.accept({loopback(3), kTheirs, {}}, {});
      return;
    case Event::kShutDown:
      connection.shut_down();
      return;
    case Event::kRequest:
      return end.hear(ConnectKind::kRequest);
    case Event::kPending:
      return end.hear(ConnectKind::kPending);
    case Event::kReject:
      return end.hear(ConnectKind::kReject, "no");
    case Event::kReply:
      return end.hear(ConnectKind::kReply, "yes");
    case Event::kReady:
      return end.hear(ConnectKind::kReady);
    case Event::kFarewell:
      return end.hear(ConnectKind::kFarewell);
    case Event::kNonsense:
      return connection.hear(kPeer, bytes_of("nonsense"));
    case Event::kLeft:
      return connection.lose(false, kStart);
    case Event::kDied:
      return connection.lose(true, kStart);
    case Event::kSoon:
      return connection.tick(kStart + kPatience / 2);
    case Event::kLate:
      return connection.tick(kStart + kPatience);
  }
}

struct Rule {
  Event event;
  ConnectionState after;
  Words said;
};

// What is not in the list of a state changes nothing and says nothing.
void expect_rules(ConnectionState state, bool asks, const std::vector<Rule>& rules) {
  std::map<Event, Rule> by_event;
  for (const Rule& rule : rules) by_event.emplace(rule.event, rule);
  for (int i = 0; i <= static_cast<int>(Event::kLate); ++i) {
    const auto event = static_cast<Event>(i);
    SCOPED_TRACE("event " + std::to_string(i));
    End end(state, asks);
    happen(end, event);
    const auto rule = by_event.find(event);
    EXPECT_EQ(end.connection.state(), rule == by_event.end() ? state : rule->second.after);
    EXPECT_EQ(end.border.log, rule == by_event.end() ? Words{} : rule->second.said);
  }
}

const std::string kTurnAway = "turn away 5";

// A message for no connection, or for the other side.
Rule strange(Event event, ConnectionState state) { return {event, state, {kTurnAway}}; }

std::string failed(int error, const std::string& data = {}) {
  return "failed " + std::to_string(error) + " " + data;
}

TEST(Connection, IdleItTakesTheProgramsCallsAndIgnoresMessages) {
  const auto stranger = [](Event event) { return strange(event, ConnectionState::kIdle); };
  expect_rules(ConnectionState::kIdle, true,
               {{Event::kConnect, ConnectionState::kRequesting, {"reach 2", "tell 1"}},
                {Event::kAccept, ConnectionState::kAccepting, {"reach 3", "tell 4"}},
                {Event::kShutDown, ConnectionState::kEnded, {}},
                stranger(Event::kRequest),
                stranger(Event::kPending),
                stranger(Event::kReject),
                stranger(Event::kReply),
                stranger(Event::kReady),
                stranger(Event::kFarewell),
                stranger(Event::kNonsense)});
}

TEST(Connection, RequestingItWaitsForTheListenersAnswer) {
  const auto stranger = [](Event event) { return strange(event, ConnectionState::kRequesting); };
  expect_rules(ConnectionState::kRequesting, true,
               {{Event::kShutDown, ConnectionState::kEnded, {}},
                {Event::kPending, ConnectionState::kPending, {}},
                {Event::kReject, ConnectionState::kEnded, {failed(ECONNREFUSED, "no")}},
                {Event::kReply,
                 ConnectionState::kConnected,
                 {"reach 4", "tell 5", "admit 5", "connected yes"}},
                {Event::kLeft, ConnectionState::kEnded, {failed(ECONNREFUSED)}},
                {Event::kDied, ConnectionState::kEnded, {failed(ECONNREFUSED)}},
                {Event::kLate, ConnectionState::kEnded, {failed(ETIMEDOUT)}},
                stranger(Event::kRequest),
                stranger(Event::kReady),
                stranger(Event::kFarewell),
                stranger(Event::kNonsense)});
}

TEST(Connection, PendingItWaitsForTheProgramOverThereAsLongAsThatLives) {
  const auto stranger = [](Event event) { return strange(event, ConnectionState::kPending); };
  expect_rules(ConnectionState::kPending, true,
               {{Event::kShutDown, ConnectionState::kEnded, {}},
                {Event::kReject, ConnectionState::kEnded, {failed(ECONNREFUSED, "no")}},
                {Event::kReply,
                 ConnectionState::kConnected,
                 {"reach 4", "tell 5", "admit 5", "connected yes"}},
                {Event::kDied, ConnectionState::kEnded, {failed(ECONNREFUSED)}},
                stranger(Event::kRequest),
                stranger(Event::kReady),
                stranger(Event::kFarewell),
                stranger(Event::kNonsense)});
}

TEST(Connection, AcceptingItWaitsUntilTheOtherEndIsReady) {
  const auto stranger = [](Event event) { return strange(event, ConnectionState::kAccepting); };
  expect_rules(ConnectionState::kAccepting, false,
               {{Event::kShutDown, ConnectionState::kEnded, {}},
                {Event::kReady, ConnectionState::kConnected, {"admit 5", "connected "}},
                {Event::kLeft, ConnectionState::kEnded, {failed(ECONNABORTED)}},
                {Event::kDied, ConnectionState::kEnded, {failed(ECONNABORTED)}},
                stranger(Event::kRequest),
                stranger(Event::kPending),
                stranger(Event::kReject),
                stranger(Event::kReply),
                stranger(Event::kNonsense)});
}

TEST(Connection, ConnectedItEndsByEitherSideOrByDeath) {
  const auto stranger = [](Event event) { return strange(event, ConnectionState::kConnected); };
  for (const bool asked : {true, false}) {
    SCOPED_TRACE(asked);
    std::vector<Rule> rules{{Event::kShutDown, ConnectionState::kEnded, {"tell 6"}},
                            {Event::kFarewell, ConnectionState::kEnded, {"parted"}},
                            {Event::kLeft, ConnectionState::kEnded, {"parted"}},
                            {Event::kDied, ConnectionState::kEnded, {"parted"}},
                            stranger(Event::kRequest),
                            stranger(Event::kNonsense)};
    const std::vector<Event> from_listener{Event::kPending, Event::kReject, Event::kReply};
    if (asked) rules.push_back(stranger(Event::kReady));
    if (!asked) {
      for (const Event event : from_listener) rules.push_back(stranger(event));
    }
    expect_rules(ConnectionState::kConnected, asked, rules);
  }
}

TEST(Connection, EndedItIgnoresMessagesAndNeverBeginsAgain) {
  const auto stranger = [](Event event) { return strange(event, ConnectionState::kEnded); };
  for (const bool asked : {true, false}) {
    expect_rules(ConnectionState::kEnded, asked,
                 {stranger(Event::kRequest), stranger(Event::kPending), stranger(Event::kReject),
                  stranger(Event::kReply), stranger(Event::kReady), stranger(Event::kFarewell),
                  stranger(Event::kNonsense)});
  }
}

TEST(Connection, AfterTheListenersDoorClosedTheAnswerHasToComeInTime) {
  End end(ConnectionState::kPending);
  end.connection.lose(false, kStart);
  end.connection.tick(kStart + kPatience / 2);
  EXPECT_EQ(end.connection.state(), ConnectionState::kPending);
  end.connection.tick(kStart + kPatience);
  EXPECT_THAT(end.border.log, ElementsAre(failed(ETIMEDOUT)));
}

TEST(Connection, ARequestCarriesNameTokenAndData) {
  End end(ConnectionState::kRequesting);
  const ConnectMessage& request = end.border.told.at(0);
  EXPECT_EQ(request.name, loopback(1));
  EXPECT_NE(request.origin, 0u);
  EXPECT_EQ(request.data, bytes_of("hello"));
}

TEST(Connection, AReplyCarriesBothTokensNameAndData) {
  End end(ConnectionState::kAccepting, false);
  const ConnectMessage& reply = end.border.told.at(0);
  EXPECT_EQ(reply.name, loopback(1));
  EXPECT_EQ(reply.origin, kTheirs);
  EXPECT_NE(reply.target, 0u);
  EXPECT_EQ(reply.data, bytes_of("welcome"));
}

TEST(Connection, AnAddressWithoutAListenerRefuses) {
  for (const int error : {ENOENT, EPERM, ECONNRESET}) {
    End end(ConnectionState::kIdle);
    end.border.reach_error = error;
    EXPECT_TRUE(end.connection.connect(loopback(2), {}, kStart));
    EXPECT_THAT(end.border.log, ElementsAre("reach 2", failed(ECONNREFUSED)));
  }
}

TEST(Connection, TheErrorOfThePathIsReported) {
  End end(ConnectionState::kIdle);
  end.border.tell_error = ENOSPC;
  EXPECT_TRUE(end.connection.connect(loopback(2), {}, kStart));
  EXPECT_THAT(end.border.log, ElementsAre("reach 2", "tell 1", failed(ENOSPC)));
}

TEST(Connection, TheRequesterHasClosedBeforeItWasAccepted) {
  End end(ConnectionState::kIdle);
  end.border.reach_error = ENOENT;
  EXPECT_TRUE(end.connection.accept({loopback(3), kTheirs, {}}, {}));
  EXPECT_THAT(end.border.log, ElementsAre("reach 3", failed(ECONNABORTED)));
}

TEST(Connection, TheAcceptingEndHasClosedBeforeItsReplyWasRead) {
  End end(ConnectionState::kPending);
  end.border.reach_error = ENOENT;
  end.hear(ConnectKind::kReply);
  EXPECT_THAT(end.border.log, ElementsAre("reach 4", kTurnAway, failed(ECONNRESET)));
}

// The requester waits for an answer, which cannot be sent.
TEST(Connection, AnAcceptingEndThatCannotBeReachedIsRejected) {
  End end(ConnectionState::kPending);
  end.border.reach_error = ENOSPC;
  end.hear(ConnectKind::kReply);
  EXPECT_THAT(end.border.log, ElementsAre("reach 4", kTurnAway, failed(ENOSPC)));
}

// Every message that could move a connection, with one of its tokens changed.
TEST(Connection, AMessageWithAnotherTokenIsNotForUs) {
  const struct {
    ConnectionState state;
    bool asks;
    ConnectKind kind;
  } cases[] = {{ConnectionState::kRequesting, true, ConnectKind::kPending},
               {ConnectionState::kRequesting, true, ConnectKind::kReject},
               {ConnectionState::kRequesting, true, ConnectKind::kReply},
               {ConnectionState::kPending, true, ConnectKind::kReply},
               {ConnectionState::kAccepting, false, ConnectKind::kReady},
               {ConnectionState::kConnected, true, ConnectKind::kFarewell},
               {ConnectionState::kConnected, false, ConnectKind::kFarewell}};
  for (const auto& one : cases) {
    SCOPED_TRACE(static_cast<int>(one.kind));
    End end(one.state, one.asks);
    end.connection.hear(kPeer, encode({one.kind, end.origin() ^ 1, end.target(), loopback(4), {}}));
    EXPECT_THAT(end.border.log, ElementsAre(kTurnAway));
    EXPECT_EQ(end.connection.state(), one.state);
  }
  for (const auto& [asks, kind] :
       {std::pair(true, ConnectKind::kFarewell), {false, ConnectKind::kFarewell}}) {
    End end(ConnectionState::kConnected, asks);
    end.connection.hear(kPeer, encode({kind, end.origin(), end.target() ^ 1, {}, {}}));
    EXPECT_THAT(end.border.log, ElementsAre(kTurnAway));
  }
  End end(ConnectionState::kAccepting, false);
  end.connection.hear(kPeer, encode({ConnectKind::kReady, end.origin(), end.target() ^ 1, {}, {}}));
  EXPECT_THAT(end.border.log, ElementsAre(kTurnAway));
}

TEST(Connection, ItIsMadeOnceAtMost) {
  for (const ConnectionState state : {ConnectionState::kRequesting, ConnectionState::kPending,
                                      ConnectionState::kConnected, ConnectionState::kEnded}) {
    End end(state);
    EXPECT_FALSE(end.connection.connect(loopback(2), {}, kStart));
    EXPECT_FALSE(end.connection.accept({loopback(3), kTheirs, {}}, {}));
    EXPECT_THAT(end.border.log, IsEmpty());
  }
}

TEST(Connection, ShuttingDownSaysWhetherItWasConnected) {
  EXPECT_TRUE(End(ConnectionState::kConnected).connection.shut_down());
  for (const ConnectionState state : {ConnectionState::kIdle, ConnectionState::kRequesting,
                                      ConnectionState::kPending, ConnectionState::kEnded}) {
    EXPECT_FALSE(End(state).connection.shut_down());
  }
}

}  // namespace
}  // namespace weft::connect
