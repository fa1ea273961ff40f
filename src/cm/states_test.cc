// SPDX-License-Identifier: BSD-2-Clause
// What does each message do in each state?
#include <gtest/gtest.h>

#include <algorithm>
#include <initializer_list>

#include "test_support.h"

namespace weft::cm {
namespace {

using namespace testing;

// A connection in one state, and what its peer names in messages about it.
struct Subject {
  Pair pair;
  Station* end = &pair.a;
  ConnectionId id = 0;
  std::uint32_t peer_id = 77;
  std::uint64_t transaction = 0;
  std::uint64_t probe = 0;  // transaction id of the LAP that was sent
  std::uint32_t qpn = 0;
  std::uint64_t service = 1;  // of a further request: nothing listens for it
  Bytes request;              // the REQ that made it, if the peer has sent it
  Bytes query;                // the same of a SIDR_REQ

  Remote peer() const { return end == &pair.a ? pair.b.here : pair.a.here; }
  wire::CmMad mad() const { return *wire::parse_cm(request); }
};

void be_requester(Subject& subject) {
  subject.pair.ask();
  subject.id = subject.pair.at_a;
  subject.qpn = 0x9C4002;
  subject.transaction = subject.pair.a.host.sent.at(0).mad.transaction;
}

void be_acceptor(Subject& subject) {
  be_requester(subject);
  subject.request = subject.pair.a.host.sent.at(0).bytes;
  subject.pair.carry();
  subject.end = &subject.pair.b;
  subject.peer_id = subject.pair.at_a;
  subject.id = subject.pair.b.program.events.at(0).event.id;
  subject.qpn = 0x9C4003;
}

void receive_rep(Subject& subject) {
  be_requester(subject);
  subject.pair.carry();
  subject.pair.accept();
  subject.pair.carry();
  subject.peer_id = subject.pair.at_b;
}

void be_established(Subject& subject) {
  receive_rep(subject);
  subject.pair.confirmed = subject.pair.a.agent.confirm(subject.id, {}, subject.pair.now);
  subject.pair.carry();
}

void have_accepted(Subject& subject) {
  be_acceptor(subject);
  subject.pair.accept();
}

// A watched connection whose peer is asked whether it knows it.
void be_probing(Subject& subject) {
  Pair& pair = subject.pair;
  subject.transaction = (pair.ask(true), pair.a.host.sent.at(0).mad.transaction);
  pair.carry();
  pair.accept(true);
  pair.carry();
  subject.id = pair.at_a;
  subject.peer_id = pair.at_b;
  subject.qpn = 0x9C4002;
  pair.confirmed = pair.a.agent.confirm(subject.id, {}, pair.now);
  pair.carry();
  pair.a.agent.probe(subject.id, pair.now);
  subject.probe = pair.a.host.sent.at(0).mad.transaction;
}

void resolve(Subject& subject) {
  Pair& pair = subject.pair;
  ResolveRequest request;
  request.to = pair.b.here;
  request.req.service = kService;
  subject.id = pair.a.agent.resolve(request, pair.a.program, nullptr, pair.now).value();
  subject.peer_id = 0;  // a SIDR_REP has no id of its sender
  subject.transaction = pair.a.host.sent.at(0).mad.transaction;
}

void be_asked(Subject& subject) {
  resolve(subject);
  subject.query = subject.pair.a.host.sent.at(0).bytes;
  subject.pair.carry();
  subject.end = &subject.pair.b;
  subject.peer_id = subject.id;
  subject.id = subject.pair.b.program.events.at(0).event.id;
}

void be_unknown(Subject& subject) {
  subject.end = &subject.pair.b;
  subject.id = 0x9C400001;
}

struct State {
  const char* name;
  void (*enter)(Subject&);
};

const State kStates[] = {
    {"REQ sent", be_requester},
    {"REP received", receive_rep},
    {"established requester", be_established},
    {"DREQ sent",
     [](Subject& s) {
       be_established(s);
       s.pair.a.agent.disconnect(s.id, {}, s.pair.now);
     }},
    {"TimeWait",
     [](Subject& s) {
       be_established(s);
       s.pair.a.agent.disconnect(s.id, {}, s.pair.now);
       s.pair.carry();
     }},
    {"REQ received", be_acceptor},
    {"REP sent", have_accepted},
    {"established acceptor",
     [](Subject& s) {
       have_accepted(s);
       s.pair.b.agent.established(s.id, s.pair.now);
     }},
    {"rejected",
     [](Subject& s) {
       be_acceptor(s);
       s.pair.accepted = s.pair.b.agent.reject(s.id, wire::CmReason::kConsumer, {}, s.pair.now);
     }},
    {"adopted",
     [](Subject& s) {
       be_requester(s);
       s.request = s.pair.a.host.sent.at(0).bytes;
       s.peer_id = s.pair.at_a;
       s.qpn = 0x9C4003;
       s.end = &s.pair.b;
       s.id = s.end->agent.adopt(s.peer(), s.mad(), s.end->program, nullptr, s.pair.now).value();
     }},
    {"forwarded",
     [](Subject& s) {
       be_acceptor(s);
       s.pair.accepted = s.pair.b.agent.forward(s.id, s.pair.now);
     }},
    {"probing", be_probing},
    {"withdrawn",
     [](Subject& s) {
       be_requester(s);
       s.pair.a.agent.disconnect(s.id, {}, s.pair.now);
     }},
    {"without RTU",
     [](Subject& s) {
       have_accepted(s);
       s.pair.pass(seconds(8), true);
     }},
    {"SIDR_REQ sent", resolve},
    {"SIDR_REQ received", be_asked},
    {"SIDR_REQ answered",
     [](Subject& s) {
       be_asked(s);
       s.pair.accepted = s.pair.b.agent.answer(s.id, {}, s.pair.now);
     }},
    {"unknown", be_unknown},
    {"listening",
     [](Subject& s) {
       be_unknown(s);
       s.service = kService;
     }},
};

template <class M>
wire::CmMessage from_peer(const Subject& subject) {
  M message;
  message.local_id = subject.peer_id;
  message.remote_id = subject.id;
  return message;
}

wire::CmMra mra(const Subject& subject, std::uint8_t message) {
  wire::CmMra mra;
  mra.local_id = subject.peer_id;
  mra.remote_id = subject.id;
  mra.message = message;
  mra.service_timeout = 24;
  return mra;
}

constexpr std::size_t kWays = 8;  // messages of connections; those behind them are the others
const std::pair<const char*, wire::CmMessage (*)(const Subject&)> kMessages[] = {
    {"REQ",
     [](const Subject& s) -> wire::CmMessage {
       if (!s.request.empty()) return s.mad().message;
       wire::CmReq another;
       another.local_id = 0x55;
       another.service = s.service;
       return another;
     }},
    {"REP",
     [](const Subject& s) {
       wire::CmMessage message = from_peer<wire::CmRep>(s);
       std::get<wire::CmRep>(message).ca_guid = options_of(2).guid;
       std::get<wire::CmRep>(message).qpn = 0x9C4003;
       return message;
     }},
    {"RTU", from_peer<wire::CmRtu>},
    {"MRA of a REQ", [](const Subject& s) -> wire::CmMessage { return mra(s, 0); }},
    {"REJ",
     [](const Subject& s) {
       wire::CmMessage message = from_peer<wire::CmRej>(s);
       std::get<wire::CmRej>(message).reason = wire::CmReason::kConsumer;
       return message;
     }},
    {"DREQ",
     [](const Subject& s) {
       wire::CmMessage message = from_peer<wire::CmDreq>(s);
       std::get<wire::CmDreq>(message).remote_qpn = s.qpn;
       return message;
     }},
    {"DREP", from_peer<wire::CmDrep>},
    {"LAP", from_peer<wire::CmLap>},
    {"MRA of a REP", [](const Subject& s) -> wire::CmMessage { return mra(s, 1); }},
    {"SIDR_REQ",
     [](const Subject& s) -> wire::CmMessage {
       if (!s.query.empty()) return wire::parse_cm(s.query)->message;
       wire::CmSidrReq another;
       another.request = 0x55;
       another.service = s.service;
       return another;
     }},
    {"SIDR_REP",
     [](const Subject& s) -> wire::CmMessage {
       wire::CmSidrRep reply;
       reply.request = s.id;
       return reply;
     }},
    {"APR",
     [](const Subject& s) {
       wire::CmMessage message = from_peer<wire::CmApr>(s);
       std::get<wire::CmApr>(message).status = 1;  // does not know the connection
       return message;
     }},
};

// An APR has the transaction id of its LAP.
wire::CmMad mad_of(const Subject& subject, const wire::CmMessage& message, unsigned wrong = 0) {
  const bool answers_probe = std::holds_alternative<wire::CmApr>(message);
  return {0, (answers_probe ? subject.probe : subject.transaction) + wrong, 0, message};
}

bool is_one_of(const std::string& name, std::initializer_list<const char*> names) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

// "REP/withdrawn": the messages that are sent, and the events. Without either: "ends" when one
// connection less is there, "later" when the next deadline is.
std::string effect(const State& state, wire::CmMessage (*message)(const Subject&)) {
  Subject subject;
  state.enter(subject);
  subject.end->agent.deliver();
  subject.end->host.look();
  subject.end->program.look();
  const Agent& agent = subject.end->agent;
  const std::size_t connections = agent.connections();
  const Time due = agent.due();
  subject.end->take(subject.peer(), mad_of(subject, message(subject)), subject.pair.now);
  const std::string messages = subject.end->host.look();
  const std::string events = subject.end->program.look();
  if (!events.empty()) return messages + "/" + events;
  if (!messages.empty()) return messages;
  if (agent.connections() < connections) return "ends";
  return agent.due() > due ? "later" : "";
}

// clang-format off
constexpr const char* kExpected[][kWays] = {
    // REQ     REP        RTU             MRA      REJ              DREQ                 DREP    LAP
    {"REJ(8)", "/reply",  "",             "later", "/rejected",     "DREP",              "",     "APR"},      // REQ sent
    {"REJ(8)", "MRA",     "",             "",      "/rejected",     "",                  "",     "APR"},      // REP received
    {"REJ(8)", "RTU",     "",             "",      "/disconnected", "DREP/disconnected", "",     "APR"},      // established
    {"REJ(8)", "",        "",             "",      "ends",          "DREP",              "ends", "APR"},      // DREQ sent
    {"REJ(8)", "",        "",             "",      "",              "DREP",              "",     "APR"},      // TimeWait
    {"MRA",    "",        "",             "",      "/withdrawn",    "",                  "",     "APR"},      // REQ received
    {"REP",    "",        "/established", "",      "/rejected",     "DREP/withdrawn",    "",     "REP APR"},  // REP sent
    {"REP",    "",        "later",        "",      "/disconnected", "DREP/disconnected", "",     "APR"},      // established
    {"REJ(28)", "",       "REJ(28)",      "",      "",              "",                  "",     "APR"},      // rejected
    {"MRA",    "",        "",             "",      "/withdrawn",    "",                  "",     "APR"},      // adopted
    {"",       "",        "",             "",      "",              "",                  "",     "APR"},      // forwarded
    {"LAP",    "RTU",     "",             "",      "/disconnected", "DREP/disconnected", "",     "APR"},      // probing
    {"REJ(8)", "REJ(4)",  "",             "",      "",              "DREP",              "",     "APR"},      // withdrawn
    {"REJ(4)", "",        "REJ(4)",       "",      "",              "DREP",              "",     "APR"},      // without RTU
    {"REJ(8)", "",        "",             "",      "",              "",                  "",     "APR"},      // SIDR_REQ sent
    {"REJ(8)", "",        "",             "",      "",              "",                  "",     "APR"},      // SIDR_REQ received
    {"REJ(8)", "",        "",             "",      "",              "DREP",              "",     "APR"},      // SIDR_REQ answered
    {"REJ(8)", "REJ(6)",  "REJ(6)",       "",      "",              "DREP",              "",     "APR"},      // unknown
    {"/request", "REJ(6)", "REJ(6)",      "",      "",              "DREP",              "",     "APR"},      // listening
};
constexpr const char* kExpectedOfOthers[][std::size(kMessages) - kWays] = {
    // MRA of a REP, SIDR_REQ, SIDR_REP, APR
    {"",      "SIDR_REP", "",          ""},       // REQ sent
    {"",      "SIDR_REP", "",          ""},       // REP received
    {"",      "SIDR_REP", "",          ""},       // established
    {"",      "SIDR_REP", "",          ""},       // DREQ sent
    {"",      "SIDR_REP", "",          ""},       // TimeWait
    {"",      "SIDR_REP", "",          ""},       // REQ received
    {"later", "SIDR_REP", "",          ""},       // REP sent
    {"",      "SIDR_REP", "",          ""},       // established
    {"",      "SIDR_REP", "",          ""},       // rejected
    {"",      "SIDR_REP", "",          ""},       // adopted
    {"",      "SIDR_REP", "",          ""},       // forwarded
    {"",      "SIDR_REP", "",          "/lost"},  // probing
    {"",      "SIDR_REP", "",          ""},       // withdrawn
    {"",      "SIDR_REP", "",          ""},       // without RTU
    {"",      "SIDR_REP", "/resolved", ""},       // SIDR_REQ sent
    {"",      "",         "",          ""},       // SIDR_REQ received
    {"",      "SIDR_REP", "",          ""},       // SIDR_REQ answered
    {"",      "SIDR_REP", "",          ""},       // unknown
    {"",      "/resolve", "",          ""},       // listening
};
// clang-format on

const char* expected(std::size_t row, std::size_t column) {
  static_assert(std::size(kExpected) == std::size(kStates));
  static_assert(std::size(kExpectedOfOthers) == std::size(kStates));
  return column < kWays ? kExpected[row][column] : kExpectedOfOthers[row][column - kWays];
}

TEST(States, MeetEachMessage) {
  for (std::size_t row = 0; row < std::size(kStates); ++row) {
    for (std::size_t column = 0; column < std::size(kMessages); ++column) {
      EXPECT_EQ(effect(kStates[row], kMessages[column].second), expected(row, column))
          << kStates[row].name << ", " << kMessages[column].first;
    }
  }
}

// Off the path the transaction id cannot be known: 64 random bits.
TEST(States, TakeNoAnswerWithoutTheTransactionId) {
  for (const State& state : kStates) {
    for (const auto& [name, message] : kMessages) {
      if (is_one_of(name, {"REQ", "SIDR_REQ", "DREQ"})) continue;
      Subject subject;
      state.enter(subject);
      subject.end->agent.deliver();
      subject.end->program.look();
      subject.end->take(subject.peer(), mad_of(subject, message(subject), 1), subject.pair.now);
      EXPECT_EQ(subject.end->program.look(), "") << state.name << ", " << name;
    }
  }
}

// An answer from another address counts no more than one with other numbers. The first answer may
// come from another port of the host that was asked.
TEST(States, TakeNoMessageFromAnotherSource) {
  for (const State& state : kStates) {
    for (const auto& [name, message] : kMessages) {
      for (const Remote& source : {remote(9), remote(1, 40001), remote(2, 40001)}) {
        if (is_one_of(name, {"REQ", "SIDR_REQ"})) continue;
        Subject subject;
        state.enter(subject);
        const bool asks = is_one_of(state.name, {"REQ sent", "SIDR_REQ sent"});
        if (asks && source.is_of_same_host(subject.pair.b.here)) continue;
        subject.end->agent.deliver();
        subject.end->program.look();
        subject.end->take(source, mad_of(subject, message(subject)), subject.pair.now);
        EXPECT_EQ(subject.end->program.look(), "") << state.name << ", " << name;
      }
    }
  }
}

TEST(States, TakeTheFirstAnswerToARequestFromAnyPortOfTheHost) {
  const Remote other_port = remote(2, 40001);
  const Remote other_carrier = {other_port.address, Carrier::kMailbox};
  for (const auto& [name, message] : kMessages) {
    const bool answers = is_one_of(name, {"REP", "REJ"});
    Subject subject;
    be_requester(subject);
    const wire::CmMad mad{0, subject.transaction, 0, message(subject)};
    if (name == std::string("REQ")) continue;
    subject.end->take(other_carrier, mad, subject.pair.now);
    EXPECT_EQ(subject.end->program.look(), "") << name;
    subject.end->take(other_port, mad, subject.pair.now);
    EXPECT_EQ(subject.end->program.events.size(), answers ? 1U : 0U) << name;
  }
  Subject waiting;
  be_requester(waiting);
  const wire::CmMra mra{0, waiting.id, 0, 22, {}};
  waiting.end->take(other_port, {0, waiting.transaction, 0, mra}, waiting.pair.now);
  waiting.end->host.look();
  waiting.pair.pass(seconds(1), true);
  EXPECT_EQ(waiting.end->host.count, 1U) << "the REQ is not repeated";
}

// A DREQ of a peer that is Weft's has the transaction id of the REQ; of others the numbers count.
TEST(States, TakeNoForgedDreq) {
  for (const bool watched : {false, true}) {
    Pair pair;
    pair.establish(watched);
    wire::CmDreq dreq;
    dreq.local_id = pair.at_a;
    dreq.remote_id = pair.at_b;
    dreq.remote_qpn = 0x9C4003 + 1;
    pair.b.take(pair.a.here, {0, 5, 0, dreq}, pair.now);
    dreq.remote_qpn = 0x9C4003;
    dreq.local_id = pair.at_a + 1;
    pair.b.take(pair.a.here, {0, 5, 0, dreq}, pair.now);
    dreq.local_id = 0;
    pair.b.take(pair.a.here, {0, 5, 0, dreq}, pair.now);
    EXPECT_EQ(pair.b.program.look(), "");
    dreq.local_id = pair.at_a;
    pair.b.take(pair.a.here, {0, 5, 0, dreq}, pair.now);
    EXPECT_EQ(pair.b.program.look(), watched ? "" : "disconnected");
  }
}

// Without the id of its sender it would match any connection of the same transaction id.
TEST(States, TakeNoRtuAndNoMraWithoutTheIdOfItsSender) {
  for (const auto& [name, message] : kMessages) {
    if (!is_one_of(name, {"RTU", "MRA of a REP"})) continue;
    for (const bool names_itself : {false, true}) {
      Subject subject;
      have_accepted(subject);
      subject.end->program.look();
      if (!names_itself) subject.peer_id = 0;
      const Time due = subject.end->agent.due();
      subject.end->take(subject.peer(), mad_of(subject, message(subject)), subject.pair.now);
      EXPECT_EQ(subject.end->agent.due() > due, names_itself) << name;
    }
  }
}

// A late copy of the REQ has reached another instance, which gives the same numbers.
TEST(States, AnswerNoReplyOfAnotherInstance) {
  Pair pair;
  pair.ask();
  pair.carry();
  pair.accept();
  const Sent reply = pair.b.host.sent.at(0);
  pair.carry();
  ASSERT_TRUE(pair.a.agent.confirm(pair.at_a, {}, pair.now));
  pair.carry();
  pair.a.host.look();
  wire::CmMad other = reply.mad;
  std::get<wire::CmRep>(other.message).ca_guid ^= 1;
  pair.a.take(pair.b.here, other, pair.now);
  EXPECT_EQ(pair.a.host.look(), "");
  other = reply.mad;
  std::get<wire::CmRep>(other.message).qpn ^= 1;
  pair.a.take(pair.b.here, other, pair.now);
  EXPECT_EQ(pair.a.host.look(), "");
  pair.a.take(pair.b.here, reply.mad, pair.now);
  EXPECT_EQ(pair.a.host.look(), "RTU");
}

// The ids of requests for connections and those of queries are different numbers.
TEST(States, TellAQueryApartFromARequestWithTheSameNumbers) {
  Pair pair;
  const auto ask = [&](const wire::CmMessage& message) {
    pair.b.take(pair.a.here, {0, 5, 0, message}, pair.now);
  };
  wire::CmReq req;
  req.local_id = 7;
  req.service = kService;
  wire::CmSidrReq query;
  query.request = 7;
  query.service = kService;
  ask(req);
  pair.accept();
  ask(query);
  EXPECT_EQ(pair.b.host.look(), "REP");
  EXPECT_EQ(pair.b.program.look(), "request resolve");
  ask(req);
  EXPECT_EQ(pair.b.host.look(), "REP");
  EXPECT_EQ(pair.b.program.look(), "");
}

}  // namespace
}  // namespace weft::cm
