// SPDX-License-Identifier: BSD-2-Clause
// Do long messages go to where they are wanted while they arrive, and is their end told once?
#include <gtest/gtest.h>

#include "simulated_endpoint.h"

namespace weft::rdm::testing {
namespace {

using wire::Operation;

struct ArrivingMessagesTest : ::testing::Test {
  World world;
  Endpoint a{world};
  Endpoint b{world};
  Bytes bytes = pattern(100'000, 1);

  ArrivingMessagesTest() { b.log.places = true; }
  bool both(const std::function<bool()>& holds) { return until({&a, &b}, holds); }
};

TEST_F(ArrivingMessagesTest, ThoseWithoutAReceiveAreHandedOverWhole) {
  b.log.places = false;
  link::Flow* const flow = connect(a, b);
  ASSERT_NE(flow, nullptr);
  send(a, b, *flow, 1, bytes, true);
  ASSERT_TRUE(both([&] { return a.ends.has(1) && b.log.messages.size() == 1; }));
  EXPECT_NE(b.log.messages[0].arrival.payload, nullptr);
  EXPECT_TRUE(b.log.messages[0].bytes == bytes);
}

TEST_F(ArrivingMessagesTest, OfOneThatIsTooLongTheBeginningIsTaken) {
  b.log.most = 12'345;
  link::Flow* const flow = connect(a, b);
  ASSERT_NE(flow, nullptr);
  send(a, b, *flow, 1, bytes, true);
  send(a, b, *flow, 2, {bytes.data(), 50}, true);
  ASSERT_TRUE(both([&] { return a.ends.has(1) && a.ends.has(2); }));
  ASSERT_EQ(b.log.messages.size(), 2U);
  EXPECT_EQ(b.log.messages[0].arrival.length, bytes.size());
  EXPECT_EQ(b.log.messages[0].error, 0);
  EXPECT_TRUE(b.log.messages[0].bytes == Bytes(bytes.begin(), bytes.begin() + 12'345));
}

// A peer that begins a message, and what becomes of it.
struct BrokenOffTest : ArrivingMessagesTest {
  Stranger stranger{world};
  std::uint32_t number = 0;

  void send_cm(Operation operation, std::size_t length, std::uint64_t announced = 0) {
    Bytes payload(length);
    MessageHeader header;
    header.length = announced;
    if (announced != 0) write_header(header, payload.data());
    stranger.send(b, stranger.of_flow(operation, number++, payload));
  }
  void begin() {
    ASSERT_TRUE(stranger.agree(b));
    send_cm(Operation::kSendFirst, 1024, 50'000);
    ASSERT_TRUE(until({&b}, [&] { return b.log.messages.size() == 1; }));
    EXPECT_EQ(b.log.messages[0].error, -1);
  }
  void expect_broken() {
    ASSERT_TRUE(until({&b}, [&] { return b.log.messages[0].error != -1; }));
    EXPECT_EQ(b.log.messages[0].error, ECONNRESET);
    EXPECT_EQ(b.log.messages.size(), 1U);
  }
};

TEST_F(BrokenOffTest, ByItsSenderThatLeaves) {
  begin();
  stranger.say(b, stranger.goodbye());
  expect_broken();
}

TEST_F(BrokenOffTest, ByItsReceiverThatListensNoMore) {
  begin();
  b.engine->refuse(b.log, b.log.opened[0].first);
  expect_broken();
  send_cm(Operation::kSendLast, 100);
  world.pass(std::chrono::milliseconds(1), {&b});
  EXPECT_EQ(b.log.messages.size(), 1U);
}

TEST_F(BrokenOffTest, ByAnEndThatComesTooSoon) {
  begin();
  send_cm(Operation::kSendLast, 100);
  expect_broken();
  EXPECT_EQ(b.stats.of(Stat::kInvalidMessages), 1U);
}

TEST_F(BrokenOffTest, ByMoreThanWasAnnounced) {
  begin();
  for (int i = 0; i < 60; ++i) send_cm(Operation::kSendMiddle, 1024);
  expect_broken();
  EXPECT_GE(b.stats.of(Stat::kRefusedRequests), 1U);
}

// An endpoint that has stopped listening does not receive the rest of the same packet either.
TEST_F(BrokenOffTest, ByAReceiverThatRefusesTheFirstCoalescedMessage) {
  struct Refuses final : link::InboxSink {
    RdmEngine* engine = nullptr;
    unsigned last_received = 0;
    void source_opened(std::uint32_t, const os::SocketAddress&) override {}
    void source_closed(std::uint32_t, bool) override {}
    void arrived(const link::Arrival& arrival) override {
      ++last_received;
      engine->refuse(*this, arrival.source);
    }
    void received(void*, int) override {}
  } sink;
  sink.engine = b.engine.get();
  b.inbox = &sink;
  ASSERT_TRUE(stranger.agree(b));
  Bytes coalesced(3 * kMessageHeader);
  MessageHeader header;
  for (std::size_t i = 1; i < 3; ++i) write_header(header, coalesced.data() + i * kMessageHeader);
  header.kind = MessageKind::kCoalesced;
  header.length = 2 * kMessageHeader;
  write_header(header, coalesced.data());
  stranger.send(b, stranger.of_flow(Operation::kSendOnly, 0, coalesced));
  world.pass(std::chrono::milliseconds(1), {&b});
  EXPECT_EQ(sink.last_received, 1U);
}

TEST_F(BrokenOffTest, ByTheEndOfTheStation) {
  begin();
  b.leave();
  EXPECT_EQ(b.log.messages[0].error, -1);
}

}  // namespace
}  // namespace weft::rdm::testing
