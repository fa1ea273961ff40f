// SPDX-License-Identifier: BSD-2-Clause
// Do messages, accesses and partings arrive at the other endpoint, once and in order?
#include "link_udp/rd_endpoint.h"

#include <gtest/gtest.h>

#include <bit>
#include <cstring>

#include "os/event.h"
#include "test_support.h"

namespace weft::udp {
namespace {

using namespace testing;
using link::PeerState;
using State = link::Outcome::State;

struct RdEndpointTest : ::testing::Test {
  Peer a;
  Peer b;

  ~RdEndpointTest() override { part(a, b); }
  bool both(const std::function<bool()>& holds) { return until({&a, &b}, holds); }
  void poll_often() {
    for (int i = 0; i < 100; ++i) {
      a.poll();
      b.poll();
    }
  }
};

void expect_message(const InboxLog::Message& message, std::uint64_t tag, const Bytes& bytes) {
  EXPECT_EQ(message.arrival.operation, link::MessageOperation::kTagged);
  EXPECT_EQ(message.arrival.tag, tag);
  EXPECT_EQ(message.arrival.has_data, tag % 2 != 0);
  EXPECT_EQ(message.arrival.data, tag % 2 != 0 ? ~tag : message.arrival.data);
  EXPECT_EQ(message.arrival.length, bytes.size());
  EXPECT_EQ(message.error, 0);
  EXPECT_TRUE(message.bytes == bytes) << "message " << tag << " of " << bytes.size() << " bytes";
}

// Messages of all sizes, all in flight together.
void exchange(Peer& from, Peer& to) {
  link::Flow* flow = connect(from, to);
  ASSERT_NE(flow, nullptr);
  const std::size_t sizes[] = {0, 1, 64, 8192, 8193, 16384, 16385, 100'000, 3'000'000, 5};
  std::vector<Bytes> sent;
  std::vector<std::uint64_t> pending;
  for (const std::size_t size : sizes) {
    const std::uint64_t tag = sent.size() + 1;
    sent.push_back(pattern(size, tag));
    const link::Outcome outcome = send(from, to, *flow, tag, sent.back());
    ASSERT_EQ(outcome.error, 0);
    if (outcome.state == State::kPending) pending.push_back(tag);
  }
  ASSERT_TRUE(until({&from, &to}, [&] {
    const auto& all = to.log.messages;
    return from.ends.ended_ones.size() == pending.size() && all.size() == sent.size() &&
           std::all_of(all.begin(), all.end(), [](const auto& each) { return each.error >= 0; });
  }));
  for (std::size_t i = 0; i < sent.size(); ++i) expect_message(to.log.messages[i], i + 1, sent[i]);
  for (const std::uint64_t tag : pending) {
    EXPECT_EQ(from.ends.ended_ones[tag], (FlowLog::End{0, 0})) << tag;
  }
  EXPECT_EQ(from.ends.doubled, 0u);
  EXPECT_FALSE(flow->busy());
}

TEST(RdEndpointMeetings, AreToldBeforeThereIsAFlowAtEitherEnd) {
  int met_by_a = 0;
  int met_by_b = 0;
  RdmOptions options;
  options.met = [&] { ++met_by_a; };
  Peer a(options);
  options.met = [&] { ++met_by_b; };
  Peer b(options);
  a.poll();
  b.poll();
  EXPECT_EQ(met_by_a, 0);
  a.flows.push_back(std::move(a.endpoint->connect(b.address)).value());
  EXPECT_EQ(met_by_a, 1);
  EXPECT_EQ(met_by_b, 0);
  EXPECT_TRUE(until({&a, &b}, [&] { return a.flows[0]->reached(); }));
  EXPECT_GT(met_by_b, 0);
  part(a, b);
}

TEST_F(RdEndpointTest, MessagesSentBeforeThePeerPollsWaitForIt) {
  a.flows.push_back(std::move(a.endpoint->connect(b.address)).value());
  link::Flow& flow = *a.flows.back();
  Bytes bytes = pattern(100, 1);
  EXPECT_FALSE(flow.reached());
  EXPECT_EQ(send(a, b, flow, 1, bytes, false, true).state, State::kPending);
  std::fill(bytes.begin(), bytes.end(), std::byte{0});
  for (int i = 0; i < 20; ++i) a.poll();
  EXPECT_TRUE(b.log.opened.empty());
  ASSERT_TRUE(until({&a, &b}, [&] {
    flow.progress(a.ends);
    return !flow.busy() && b.log.messages.size() == 1;
  }));
  EXPECT_TRUE(flow.reached());
  EXPECT_EQ(a.ends.ended_ones[1], (FlowLog::End{0, 0}));
  EXPECT_TRUE(b.log.messages[0].bytes == pattern(100, 1));
  ASSERT_EQ(b.log.opened.size(), 1u);
  EXPECT_TRUE(b.log.opened[0].second == a.address);
  EXPECT_TRUE(a.log.opened.empty());
}

TEST(RdEndpoint, SendsToAPeerThatNeverPollsEndInTime) {
  Options short_time;
  short_time.connect_timeout = std::chrono::milliseconds(50);
  RdmOptions impatient;
  impatient.device = &short_time;
  Peer a(impatient);
  Peer b;
  a.flows.push_back(std::move(a.endpoint->connect(b.address)).value());
  Bytes bytes = pattern(100, 1);
  EXPECT_EQ(send(a, b, *a.flows.back(), 1, bytes, false, true).state, State::kPending);
  ASSERT_TRUE(until({&a}, [&] {
    a.flows.back()->progress(a.ends);
    return !a.flows.back()->busy();
  }));
  EXPECT_EQ(a.ends.ended_ones[1], (FlowLog::End{EHOSTUNREACH, 0}));
  EXPECT_NE(a.flows.back()->check_peer(a.ends), link::PeerState::kAlive);
}

// A crowd that has no time to answer is not asked all the more.
TEST(RdEndpoint, UnansweredRequestsBecomeRare) {
  Peer a;
  Peer b;
  a.flows.push_back(std::move(a.endpoint->connect(b.address)).value());
  const auto begin = std::chrono::steady_clock::now();
  std::chrono::milliseconds passed{0};
  while (passed < std::chrono::milliseconds(600)) {
    a.poll();
    passed = std::chrono::ceil<std::chrono::milliseconds>(std::chrono::steady_clock::now() - begin);
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  // At the beginning, and then after 2, 4, 8... milliseconds, and after half a second at most.
  const auto doubled = std::bit_width(static_cast<std::uint64_t>(passed.count()) / 2 + 1);
  EXPECT_GT(a.sent(), 1U);
  EXPECT_LE(a.sent(), static_cast<std::uint64_t>(doubled + passed.count() / 500));
}

// One has asked the other for a flow, and has a message for it that waits.
struct AskingTest {
  Options options;
  Peer a;
  Peer b;
  Bytes bytes = pattern(100, 1);

  explicit AskingTest(std::chrono::milliseconds connect_timeout)
      : a([this, connect_timeout] {
          options.connect_timeout = connect_timeout;
          RdmOptions impatient;
          impatient.device = &options;
          return impatient;
        }()) {
    a.flows.push_back(std::move(a.endpoint->connect(b.address)).value());
    EXPECT_EQ(send(a, b, *a.flows.back(), 1, bytes, true, true).state, State::kPending);
    a.poll();
  }
  ~AskingTest() { part(a, b); }
};

TEST(RdEndpoint, AnAnswerThatLiesUnreadWhenTheTimeIsOverCounts) {
  AskingTest asking(std::chrono::milliseconds(1));
  ASSERT_TRUE(until({&asking.b}, [&] { return asking.b.sent() != 0; }));
  ASSERT_TRUE(os::wait_readable(asking.a.wake.fd(), std::chrono::seconds(20)));
  std::this_thread::sleep_for(std::chrono::milliseconds(5));
  ASSERT_TRUE(until({&asking.a, &asking.b}, [&] { return asking.a.ends.has(1); }));
  EXPECT_EQ(asking.a.ends.ended_ones[1], (FlowLog::End{0, 0}));
}

TEST(RdEndpoint, TimeWithoutPollsIsNotHeldAgainstThePeer) {
  AskingTest asking(std::chrono::milliseconds(300));
  std::this_thread::sleep_for(std::chrono::milliseconds(400));
  asking.a.poll();
  ASSERT_TRUE(until({&asking.b, &asking.a}, [&] { return asking.a.ends.has(1); }));
  EXPECT_EQ(asking.a.ends.ended_ones[1], (FlowLog::End{0, 0}));
}

// Its socket is there, so that its host says nothing.
TEST(RdEndpoint, APeerThatIsStoppedLivesUntilPatienceEnds) {
  Options short_time;
  short_time.peer_timeout = std::chrono::milliseconds(300);
  RdmOptions impatient;
  impatient.device = &short_time;
  Peer a(impatient);
  Peer patient;
  Peer stopped;
  Bytes bytes = pattern(100, 1);
  for (Peer* peer : {&a, &patient}) {
    ASSERT_NE(connect(*peer, stopped), nullptr);
    EXPECT_EQ(send(*peer, stopped, *peer->flows.back(), 1, bytes, true).state, State::kPending);
  }
  ASSERT_TRUE(until({&a, &patient}, [&] { return a.ends.has(1); }));
  EXPECT_EQ(a.ends.ended_ones[1], (FlowLog::End{ECONNRESET, 0}));
  EXPECT_EQ(a.flows.back()->check_peer(a.ends), link::PeerState::kDied);
  EXPECT_FALSE(patient.ends.has(1));
  ASSERT_TRUE(until({&patient, &stopped}, [&] { return patient.ends.has(1); }));
  EXPECT_EQ(patient.ends.ended_ones[1], (FlowLog::End{0, 0}));
  part(patient, stopped);
}

TEST_F(RdEndpointTest, MessagesOfAllSizesArriveWholeAndInOrder) { exchange(a, b); }

TEST_F(RdEndpointTest, BothWaysAtOnce) {
  exchange(a, b);
  exchange(b, a);
}

TEST(RdEndpoint, OverIpv6Too) {
  const auto local = os::address_of("::1");
  if (!os::UdpSocket::bind(local, {}).ok()) GTEST_SKIP() << "this system has no IPv6 loopback";
  Peer a({}, local);
  Peer b({}, local);
  exchange(a, b);
  part(a, b);
}

TEST_F(RdEndpointTest, PeersAreToldApart) {
  Peer c;
  link::Flow* of_a = connect(a, b);
  link::Flow* of_c = connect(c, b);
  ASSERT_TRUE(of_a != nullptr && of_c != nullptr);
  Bytes one = pattern(50, 1);
  Bytes two = pattern(20'000, 2);
  for (std::uint64_t i = 0; i < 10; ++i) {
    send(a, b, *of_a, 2 * i, one);
    send(c, b, *of_c, 2 * i + 1, two);
  }
  ASSERT_TRUE(until({&a, &b, &c}, [&] {
    const auto& all = b.log.messages;
    return c.ends.ended_ones.size() == 10 && all.size() == 20 &&
           std::all_of(all.begin(), all.end(), [](const auto& each) { return each.error >= 0; });
  }));
  ASSERT_EQ(b.log.opened.size(), 2u);
  EXPECT_TRUE(b.log.opened[0].second == a.address);
  EXPECT_TRUE(b.log.opened[1].second == c.address);
  std::uint64_t next[] = {0, 1};
  for (const auto& message : b.log.messages) {
    const bool second = message.arrival.source == b.log.opened[1].first;
    expect_message(message, next[second], second ? two : one);
    next[second] += 2;
  }
  c.leave(&b);
}

TEST_F(RdEndpointTest, AnOfferMayBeTakenInPartOrNotAtAll) {
  link::Flow* flow = connect(a, b);
  ASSERT_NE(flow, nullptr);
  Bytes bytes = pattern(200'000, 1);
  b.log.most = 70'001;
  send(a, b, *flow, 2, bytes);
  ASSERT_TRUE(both([&] { return a.ends.has(2); }));
  ASSERT_TRUE(both([&] { return b.log.messages[0].error == 0; }));
  EXPECT_EQ(b.log.messages[0].arrival.length, bytes.size());
  EXPECT_TRUE(b.log.messages[0].bytes == Bytes(bytes.begin(), bytes.begin() + 70'001));
  b.log.accepts = false;
  EXPECT_EQ(send(a, b, *flow, 4, bytes).state, State::kPending);
  ASSERT_TRUE(both([&] { return b.log.messages.size() == 2; }));
  poll_often();
  EXPECT_FALSE(a.ends.has(4));
  EXPECT_TRUE(flow->busy());
  b.endpoint->acknowledge(b.log.messages[1].arrival.offer);
  ASSERT_TRUE(both([&] { return a.ends.has(4); }));
  EXPECT_EQ(a.ends.ended_ones[4].error, 0);
}

TEST_F(RdEndpointTest, UntilDeliveredEndsOnlyWhenItIsAcknowledged) {
  link::Flow* flow = connect(a, b);
  ASSERT_NE(flow, nullptr);
  b.log.acknowledges = false;
  Bytes bytes = pattern(100, 1);
  EXPECT_EQ(send(a, b, *flow, 7, bytes, true).state, State::kPending);
  ASSERT_TRUE(both([&] { return b.log.messages.size() == 1; }));
  EXPECT_TRUE(b.log.messages[0].arrival.wants_ack);
  poll_often();
  EXPECT_FALSE(a.ends.has(7));
  b.endpoint->acknowledge(b.log.messages[0].arrival.offer);
  ASSERT_TRUE(both([&] { return a.ends.has(7); }));
  EXPECT_EQ(a.ends.ended_ones[7].error, 0);
}

TEST_F(RdEndpointTest, BuffersThatMustBeCopiedMayChangeAtOnce) {
  link::Flow* flow = connect(a, b);
  ASSERT_NE(flow, nullptr);
  const Bytes original = pattern(40'000, 1);
  for (std::uint64_t i = 0; i < 10; ++i) {
    Bytes bytes = original;
    EXPECT_EQ(send(a, b, *flow, i, bytes, false, true).state, State::kDone);
    std::fill(bytes.begin(), bytes.end(), std::byte{0});
  }
  ASSERT_TRUE(both([&] { return b.log.messages.size() == 10; }));
  for (std::uint64_t i = 0; i < 10; ++i) expect_message(b.log.messages[i], i, original);
}

TEST_F(RdEndpointTest, ABurstArrivesInOrder) {
  link::Flow* flow = connect(a, b);
  ASSERT_NE(flow, nullptr);
  constexpr std::uint64_t kMessages = 9000;
  unsigned held_back = 0;
  for (std::uint64_t i = 0; i < kMessages; ++i) {
    // Small ones share packets, and must not overtake others.
    std::vector<std::uint64_t> numbers(i % 7 == 0 ? 250 : 1, i);
    const LocalRange piece{numbers.data(), 8 * numbers.size()};
    link::SendRequest request;
    request.tag = i;
    request.pieces = {&piece, 1};
    request.length = piece.length;
    while (flow->send(request).state == State::kAgain) {
      ++held_back;
      a.poll();
      b.poll();
    }
  }
  EXPECT_GT(held_back, 0u);
  ASSERT_TRUE(both([&] { return b.log.messages.size() >= kMessages; }));
  poll_often();
  ASSERT_EQ(b.log.messages.size(), kMessages);
  for (std::uint64_t i = 0; i < kMessages; ++i) {
    EXPECT_EQ(b.log.messages[i].arrival.tag, i);
    EXPECT_EQ(std::memcmp(b.log.messages[i].bytes.data(), &i, sizeof i), 0);
  }
}

TEST_F(RdEndpointTest, AReceiverThatTakesNoMoreHoldsSendersBack) {
  link::Flow* flow = connect(a, b);
  ASSERT_NE(flow, nullptr);
  b.log.takes = false;
  Bytes bytes = pattern(9000, 1);
  for (std::uint64_t i = 0; i < 200; ++i) send(a, b, *flow, i, bytes);
  poll_often();
  EXPECT_TRUE(b.log.messages.empty());
  EXPECT_TRUE(a.ends.ended_ones.empty());
  b.log.takes = true;
  ASSERT_TRUE(both([&] { return a.ends.ended_ones.size() == 200; }));
  ASSERT_EQ(b.log.messages.size(), 200u);
  for (std::uint64_t i = 0; i < 200; ++i) expect_message(b.log.messages[i], i, bytes);
}

TEST_F(RdEndpointTest, ARefusedSourceFindsNoEndpoint) {
  link::Flow* flow = connect(a, b);
  ASSERT_NE(flow, nullptr);
  b.log.accepts = false;
  Bytes bytes = pattern(kEagerLimit + 50'000, 1);
  send(a, b, *flow, 1, bytes);
  ASSERT_TRUE(both([&] { return b.log.messages.size() == 1; }));
  b.endpoint->refuse(b.log, b.log.opened[0].first);
  ASSERT_EQ(b.log.closed.size(), 1u);
  EXPECT_EQ(b.log.closed[0], (InboxLog::Closed{b.log.opened[0].first, false}));
  ASSERT_TRUE(both([&] { return flow->check_peer(a.ends) == PeerState::kRefuses; }));
  EXPECT_EQ(a.ends.ended_ones[1], (FlowLog::End{ECONNRESET, 0}));
  EXPECT_EQ(send(a, b, *flow, 2, bytes).error, ECONNRESET);
  poll_often();
  EXPECT_EQ(b.log.messages.size(), 1u);
  EXPECT_EQ(b.log.closed.size(), 1u);
}

TEST_F(RdEndpointTest, AnEndpointThatClosesSaysSo) {
  link::Flow* there = connect(a, b);
  link::Flow* back = connect(b, a);
  ASSERT_TRUE(there != nullptr && back != nullptr);
  Bytes bytes = pattern(100, 1);
  send(b, a, *back, 3, bytes);
  b.log.accepts = false;
  Bytes offered = pattern(kEagerLimit + 50'000, 1);
  send(a, b, *there, 1, offered);
  ASSERT_TRUE(both([&] { return b.log.messages.size() == 1 && a.log.messages.size() == 1; }));
  EXPECT_TRUE(a.log.closed.empty());
  b.leave(&a);
  ASSERT_TRUE(until({&a}, [&] { return !a.log.closed.empty() && a.ends.has(1); }));
  EXPECT_EQ(a.log.closed[0], (InboxLog::Closed{a.log.opened[0].first, false}));
  EXPECT_EQ(a.ends.ended_ones[1].error, ECONNRESET);
  EXPECT_EQ(there->check_peer(a.ends), PeerState::kLeft);
  EXPECT_EQ(a.log.closed.size(), 1u);
}

// The sender may leave as soon as its last messages are copied: they arrive before its disconnect.
TEST_F(RdEndpointTest, LastWordsAreHeard) {
  link::Flow* flow = connect(a, b);
  ASSERT_NE(flow, nullptr);
  Bytes bytes = pattern(1000, 1);
  for (std::uint64_t i = 0; i < 5; ++i) send(a, b, *flow, i, bytes);
  a.leave(&b);
  ASSERT_TRUE(until({&b}, [&] { return !b.log.closed.empty(); }));
  ASSERT_EQ(b.log.messages.size(), 5u);
  for (std::uint64_t i = 0; i < 5; ++i) expect_message(b.log.messages[i], i, bytes);
  EXPECT_FALSE(b.log.closed[0].died);
}

// What a sender takes back ends at once; the peer hears that it left, not that it died.
TEST_F(RdEndpointTest, AnEndpointThatGivesUpLeavesInGoodOrder) {
  link::Flow* flow = connect(a, b);
  ASSERT_NE(flow, nullptr);
  b.log.accepts = false;
  Bytes bytes = pattern(kEagerLimit + 50'000, 1);
  send(a, b, *flow, 1, bytes);
  ASSERT_TRUE(both([&] { return b.log.messages.size() == 1; }));
  flow->give_up(a.ends);
  EXPECT_EQ(a.ends.ended_ones[1].error, ECONNRESET);
  EXPECT_FALSE(flow->busy());
  b.log.accept(b.log.messages[0]);
  ASSERT_TRUE(both([&] { return b.log.messages[0].error != -1; }));
  EXPECT_EQ(b.log.messages[0].error, ECONNRESET);
  a.leave(&b);
  ASSERT_TRUE(until({&b}, [&] { return !b.log.closed.empty(); }));
  EXPECT_FALSE(b.log.closed[0].died);
}

}  // namespace
}  // namespace weft::udp
