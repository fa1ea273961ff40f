// SPDX-License-Identifier: BSD-2-Clause
// What does each message do in each state?
#include <gtest/gtest.h>

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
  std::uint32_t qpn = 0;
  Bytes request;  // the REQ that made it, if the peer has sent it

  Remote peer() const { return end == &pair.a ? pair.b.here : pair.a.here; }
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
       s.id = s.end->agent.adopt(s.peer(), s.request, s.end->program, nullptr, s.pair.now).value();
     }},
    {"forwarded",
     [](Subject& s) {
       be_acceptor(s);
       s.pair.accepted = s.pair.b.agent.forward(s.id, s.pair.now);
     }},
    {"unknown",
     [](Subject& s) {
       s.end = &s.pair.b;
       s.id = 0x9C400001;
     }},
};

template <class M>
wire::CmMessage from_peer(const Subject& subject) {
  M message;
  message.local_id = subject.peer_id;
  message.remote_id = subject.id;
  return message;
}

const std::pair<const char*, wire::CmMessage (*)(const Subject&)> kMessages[] = {
    {"REQ",
     [](const Subject& s) -> wire::CmMessage {
       if (!s.request.empty()) return wire::parse_cm(s.request)->message;
       wire::CmReq another;
       another.local_id = 0x55;
       another.service = 1;
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
    {"MRA of a REQ", from_peer<wire::CmMra>},
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
};

// "REJ / rejected": the messages that are sent, and the events.
std::string effect(const State& state, wire::CmMessage (*message)(const Subject&)) {
  Subject subject;
  state.enter(subject);
  subject.end->agent.deliver();
  subject.end->host.look();
  subject.end->program.look();
  subject.end->take(subject.peer(), {0, subject.transaction, 0, message(subject)},
                    subject.pair.now);
  const std::string events = subject.end->program.look();
  return subject.end->host.look() + (events.empty() ? "" : "/" + events);
}

// clang-format off
constexpr const char* kExpected[][8] = {
    // REQ  REP       RTU             MRA REJ              DREQ                 DREP LAP
    {"REJ", "/reply", "",             "", "/rejected",     "DREP",              "", "APR"},      // REQ sent
    {"REJ", "MRA",    "",             "", "/rejected",     "",                  "", "APR"},      // REP received
    {"REJ", "RTU",    "",             "", "/disconnected", "DREP/disconnected", "", "APR"},      // established
    {"REJ", "",       "",             "", "",              "DREP",              "", "APR"},      // DREQ sent
    {"REJ", "",       "",             "", "",              "DREP",              "", "APR"},      // TimeWait
    {"MRA", "",       "",             "", "/withdrawn",    "",                  "", "APR"},      // REQ received
    {"REP", "",       "/established", "", "/rejected",     "DREP/withdrawn",    "", "REP APR"},  // REP sent
    {"REP", "",       "",             "", "/disconnected", "DREP/disconnected", "", "APR"},      // established
    {"REJ", "",       "REJ",          "", "",              "",                  "", "APR"},      // rejected
    {"MRA", "",       "",             "", "/withdrawn",    "",                  "", "APR"},      // adopted
    {"",    "",       "",             "", "",              "",                  "", "APR"},      // forwarded
    {"REJ", "REJ",    "REJ",          "", "",              "DREP",              "", "APR"},      // unknown
};
// clang-format on

TEST(States, MeetEachMessage) {
  for (std::size_t row = 0; row < std::size(kStates); ++row) {
    for (std::size_t column = 0; column < std::size(kMessages); ++column) {
      EXPECT_EQ(effect(kStates[row], kMessages[column].second), kExpected[row][column])
          << kStates[row].name << ", " << kMessages[column].first;
    }
  }
}

// Off the path the transaction id cannot be known: 64 random bits.
TEST(States, TakeNoAnswerWithoutTheTransactionId) {
  for (const State& state : kStates) {
    for (const auto& [name, message] : kMessages) {
      if (name == std::string("REQ") || name == std::string("DREQ")) continue;
      Subject subject;
      state.enter(subject);
      subject.end->agent.deliver();
      subject.end->program.look();
      subject.end->take(subject.peer(), {0, subject.transaction + 1, 0, message(subject)},
                        subject.pair.now);
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
        if (name == std::string("REQ")) continue;
        Subject subject;
        state.enter(subject);
        const bool asks = state.name == std::string("REQ sent");
        if (asks && source.is_of_same_host(subject.pair.b.here)) continue;
        subject.end->agent.deliver();
        subject.end->program.look();
        subject.end->take(source, {0, subject.transaction, 0, message(subject)}, subject.pair.now);
        EXPECT_EQ(subject.end->program.look(), "") << state.name << ", " << name;
      }
    }
  }
}

TEST(States, TakeTheFirstAnswerToARequestFromAnyPortOfTheHost) {
  const Remote other_port = remote(2, 40001);
  const Remote other_carrier = {other_port.address, Carrier::kMailbox};
  for (const auto& [name, message] : kMessages) {
    const bool answers = name == std::string("REP") || name == std::string("REJ");
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

}  // namespace
}  // namespace weft::cm
