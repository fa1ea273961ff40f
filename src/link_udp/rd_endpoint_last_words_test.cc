// SPDX-License-Identifier: BSD-2-Clause
// Is what is said before the other end answers heard once, and known to be heard if that end
// leaves?
#include <gtest/gtest.h>

#include "hostile_test_support.h"

namespace weft::udp {
namespace {

using namespace testing;

// Begins a flow with a message, without a poll.
void say_first(Peer& from, Peer& to, std::span<std::byte> bytes) {
  from.flows.push_back(std::move(from.endpoint->connect(to.address)).value());
  send(from, to, *from.flows.back(), 1, bytes);
}

TEST(RdEndpointLastWords, MessagesFromBeforeTheAnswerComeOnceAndInOrder) {
  for (const std::size_t length : {std::size_t{1}, std::size_t{256}, std::size_t{20'000}}) {
    Peer a;
    Peer b;
    Bytes words = pattern(length, 1);
    say_first(a, b, words);
    for (int i = 0; i < 100; ++i) a.poll();  // asks several times
    Bytes more = pattern(100, 2);
    for (std::uint64_t tag = 2; tag <= 3; ++tag) send(a, b, *a.flows[0], tag, more);
    ASSERT_TRUE(until({&a, &b}, [&] { return b.log.messages.size() == 3; }));
    for (int i = 0; i < 1000; ++i) {
      a.poll();
      b.poll();
    }
    EXPECT_EQ(b.log.opened.size(), 1u);
    ASSERT_EQ(b.log.messages.size(), 3u);
    EXPECT_TRUE(b.log.messages[0].bytes == words);
    for (std::size_t i = 0; i < 3; ++i) EXPECT_EQ(b.log.messages[i].arrival.tag, i + 1);
    part(a, b);
  }
}

TEST(RdEndpointLastWords, TheFirstWaitForAnEndThatTakesNoMore) {
  Peer a;
  Peer b;
  b.log.takes = false;
  Bytes words = pattern(8, 1);
  say_first(a, b, words);
  for (int i = 0; i < 1000; ++i) {
    a.poll();
    b.poll();
  }
  EXPECT_TRUE(b.log.messages.empty());
  b.log.takes = true;
  EXPECT_TRUE(until({&a, &b}, [&] { return b.log.messages.size() == 1; }));
  part(a, b);
}

// A peer that has taken a packet and leaves, and whose acknowledgement is lost.
TEST(RdEndpointLastWords, MessagesThatADisconnectAcknowledgesWereSent) {
  Peer a;
  Stranger b;
  a.flows.push_back(std::move(a.endpoint->connect(b.socket->address())).value());
  Bytes bytes = pattern(100, 1);
  for (std::uint64_t tag = 1; tag <= 2; ++tag) {
    const LocalRange piece{bytes.data(), bytes.size()};
    link::SendRequest request;
    request.pieces = {&piece, 1};
    request.length = bytes.size();
    request.cookie = reinterpret_cast<void*>(tag);
    ASSERT_EQ(a.flows[0]->send(request).state, link::Outcome::State::kPending);
  }
  std::optional<ReqMad> asked;
  ASSERT_TRUE(until({&a}, [&] {
    asked = Stranger::last<ReqMad>(b.hear());
    return asked.has_value();
  }));
  const RepMad rep = b.reply_to(*asked, Psn(Psn::kMask));
  const std::uint64_t before = a.sent();
  b.send(a, Stranger::message(rep));
  ASSERT_TRUE(until({&a}, [&] { return a.sent() >= before + 3; }));
  EXPECT_TRUE(a.ends.ended_ones.empty());
  b.send(a, Stranger::message(DreqMad{rep.local_id,
                                      asked->local_id,
                                      asked->transaction,
                                      asked->me.queue_pair,
                                      {rep.first.after(1)}}));
  ASSERT_TRUE(until({&a}, [&] { return a.ends.has(2); }));
  EXPECT_EQ(a.ends.ended_ones.at(1), (FlowLog::End{0, 0}));
  EXPECT_EQ(a.ends.ended_ones.at(2), (FlowLog::End{ECONNRESET, 0}));
}

}  // namespace
}  // namespace weft::udp
