// SPDX-License-Identifier: BSD-2-Clause
// Do datagrams arrive as they were sent, in trains or alone, and is an absent peer no error?
#include "link_udp/ud_endpoint.h"

#include <gtest/gtest.h>

#include <chrono>
#include <thread>

#include "datagram_test_support.h"
#include "os/event.h"

namespace weft::udp {
namespace {

using namespace testing;
using std::chrono::milliseconds;

bool readable(const DatagramPeer& peer) {
  return os::wait_readable(peer.wake.fd(), milliseconds(0));
}

bool comes(const DatagramPeer& peer) {
  return os::wait_readable(peer.wake.fd(), milliseconds(20'000));
}

TEST(UdEndpoint, MessagesArriveWithTheirDataAndTheirSource) {
  DatagramPeer a;
  DatagramPeer b;
  const auto flow = a.to(b.address);
  std::size_t count = 0;
  for (const std::size_t length : {0, 1, 2, 3, 100, 4095, 4096}) {
    ASSERT_TRUE(is_done(send(*flow, pattern(length, length))));
    ++count;
    ASSERT_EQ(b.heard(count), count);
    const auto& message = b.log.messages.back();
    EXPECT_EQ(message.arrival.operation, link::MessageOperation::kDatagram);
    EXPECT_EQ(message.arrival.source, 0u);
    EXPECT_EQ(message.arrival.tag, 0u) << "of no group";
    EXPECT_EQ(message.arrival.has_data, length % 2 != 0);
    if (length % 2 != 0) {
      EXPECT_EQ(message.arrival.data, 0xF000'0000 + length);
    }
    EXPECT_TRUE(message.bytes == pattern(length, length)) << length;
  }
  ASSERT_EQ(b.log.opened.size(), 1u);
  EXPECT_EQ(b.log.opened[0].second, a.address);
  EXPECT_EQ(b.lost(), 0u);
}

TEST(UdEndpoint, OtherOperationsAndLongerDatagramsAreRefused) {
  DatagramPeer a;
  const auto flow = a.to(os::loopback(9));
  EXPECT_EQ(send(*flow, Bytes(4097)).error, EMSGSIZE);
  link::SendRequest message;
  EXPECT_EQ(flow->send(message).error, EOPNOTSUPP);
  EXPECT_EQ(flow->access({}).error, EOPNOTSUPP);
  EXPECT_EQ(flow->atomic({}).error, EOPNOTSUPP);
}

// A pause would end the burst, and this process may be made to pause at any time.
TEST(UdEndpoint, ABurstWaitsForAPollToLeaveTogether) {
  DatagramPeer a;
  DatagramPeer b;
  const auto flow = a.to(b.address);
  const Bytes bytes = pattern(100, 1);
  bool lingered = false;
  bool burst = false;  // surely: a slow machine may never send that fast
  std::size_t sent = 0;
  for (int round = 0; round < 1'000 && !lingered; ++round) {
    const auto begin = std::chrono::steady_clock::now();
    for (int i = 0; i < 40; ++i) send(*flow, bytes, true);
    burst = burst || std::chrono::steady_clock::now() - begin < std::chrono::microseconds(20);
    lingered = flow->ready();
    a.endpoint->poll(a.log);
    EXPECT_FALSE(flow->ready());
    ASSERT_EQ(b.heard(sent += 40), sent);
  }
  if (!lingered && !burst) GTEST_SKIP() << "here 40 datagrams are no burst";
  EXPECT_TRUE(lingered);
}

TEST(UdEndpoint, NothingLingersUnlessItMayOrWhileItsSenderSleeps) {
  DatagramPeer a;
  DatagramPeer b;
  const auto flow = a.to(b.address);
  for (int i = 0; i < 10; ++i) send(*flow, pattern(100, 1), i < 9);
  EXPECT_EQ(b.heard(10), 10u) << "the last one takes the others with it";
  for (int i = 0; i < 10; ++i) send(*flow, pattern(100, 1), true);
  EXPECT_TRUE(a.endpoint->fall_asleep());
  EXPECT_EQ(b.heard(20), 20u);
  for (int i = 0; i < 10; ++i) send(*flow, pattern(100, 1), true);
  EXPECT_EQ(b.heard(30), 30u);
  a.endpoint->wake_up();
}

TEST(UdEndpoint, LingeringDatagramsLeaveWithTheirFlow) {
  DatagramPeer a;
  DatagramPeer b;
  DatagramPeer c;
  auto flow = a.to(b.address);
  const auto other = a.to(c.address);
  for (int i = 0; i < 10; ++i) send(i % 2 == 0 ? *flow : *other, pattern(100, 1), true);
  flow.reset();
  EXPECT_EQ(b.heard(5), 5u);
  EXPECT_EQ(c.heard(5), 5u);
}

TEST(UdEndpoint, APollHandsOverSoManyAndTheRestStays) {
  DatagramPeer a;
  DatagramPeer b;
  const auto flow = a.to(b.address);
  ASSERT_TRUE(b.endpoint->fall_asleep());
  for (int i = 0; i < 150; ++i) send(*flow, pattern(100, 1), true);
  a.endpoint->poll(a.log);
  ASSERT_TRUE(comes(b));
  b.endpoint->wake_up();
  unsigned count = 0;
  while (count < 150) {
    const unsigned once = b.endpoint->poll(b.log);
    EXPECT_LE(once, 64u);
    count += once;
    ASSERT_TRUE(count == 150 || !b.endpoint->fall_asleep() || comes(b)) << "the rest is forgotten";
  }
  EXPECT_TRUE(b.endpoint->fall_asleep());
}

TEST(UdEndpoint, AReceiverThatTakesNoMoreLeavesMessagesWhereTheyAre) {
  DatagramPeer a;
  DatagramPeer b;
  const auto flow = a.to(b.address);
  b.log.takes = false;
  send(*flow, pattern(100, 1));
  ASSERT_TRUE(comes(b));
  EXPECT_EQ(b.endpoint->poll(b.log), 0u);
  b.log.takes = true;
  EXPECT_EQ(b.heard(1), 1u);
}

TEST(UdEndpoint, ASleeperIsWokenByADatagramOrByItsBell) {
  DatagramPeer a;
  DatagramPeer b;
  const auto flow = a.to(b.address);
  ASSERT_TRUE(b.endpoint->fall_asleep());
  EXPECT_FALSE(readable(b));
  send(*flow, pattern(100, 1));
  EXPECT_TRUE(comes(b));
  b.endpoint->wake_up();
  EXPECT_EQ(b.heard(1), 1u);
  EXPECT_TRUE(b.endpoint->fall_asleep());
  EXPECT_FALSE(readable(b));
  b.wake.ring();
  EXPECT_TRUE(comes(b));
}

TEST(UdEndpoint, PacketsThatArriveBeforeSendsAreNotLostAndWakeASleeper) {
  for (const std::size_t many : {1, 3}) {
    DatagramPeer a;
    DatagramPeer b;
    DatagramPeer c;
    const auto flow = a.to(b.address);
    ASSERT_TRUE(a.endpoint->fall_asleep());
    for (std::size_t i = 0; i < many; ++i) send(*c.to(a.address), pattern(10, i));
    for (int i = 0; i < 100; ++i) ASSERT_TRUE(is_done(send(*flow, Bytes(4096))));
    EXPECT_TRUE(comes(a)) << many;
    a.endpoint->wake_up();
    ASSERT_EQ(a.heard(many), many);
    for (std::size_t i = 0; i < many; ++i) {
      EXPECT_TRUE(a.log.messages[i].bytes == pattern(10, i)) << i;
    }
  }
}

TEST(UdEndpoint, SendsToAClosedPortFailForAWhileAndOthersGoOn) {
  DatagramPeer a;
  DatagramPeer b;
  const auto flow = a.to(b.address);
  DatagramPeer gone;
  const os::SocketAddress address = gone.address;
  auto lost = a.to(address);
  ASSERT_TRUE(is_done(send(*lost, pattern(100, 1))));
  gone.endpoint.reset();
  gone.port.reset();
  // The host answers by ICMP, which sends notice without a poll.
  link::Outcome outcome;
  std::size_t sent = 0;
  while (is_done(outcome = send(*lost, pattern(100, 1)))) {
    ASSERT_TRUE(is_done(send(*flow, pattern(100, 1))));
    ASSERT_EQ(b.heard(++sent), sent);
  }
  EXPECT_GT(sent, 0u);
  EXPECT_EQ(outcome.error, ECONNREFUSED);
  EXPECT_EQ(a.endpoint->connect(address).error().code, ENOENT);
  EXPECT_EQ(lost->check_peer(a.ends), link::PeerState::kAlive) << "sends tell";
  lost.reset();
  std::unique_ptr<link::Flow> again;
  while (again == nullptr) {
    a.endpoint->check_sources(a.log);
    again = a.to(address);
    std::this_thread::yield();
  }
  DatagramPeer successor({}, address);
  EXPECT_TRUE(is_done(send(*again, pattern(100, 1))));
  EXPECT_EQ(successor.heard(1), 1u);
}

TEST(UdEndpoint, AnErrorThatWasReadDoesNotWakeTheEndpoint) {
  DatagramPeer a;
  ASSERT_TRUE(a.endpoint->fall_asleep());
  const auto closed = a.to(os::loopback(9));
  while (is_done(send(*closed, pattern(100, 1)))) continue;
  // Each of them is answered, the last ones perhaps only now.
  int quiet = 0;
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (quiet < 1'000 && std::chrono::steady_clock::now() < end) {
    a.endpoint->poll(a.log);
    quiet = readable(a) ? 0 : quiet + 1;
  }
  EXPECT_EQ(quiet, 1'000) << "it was looked at";
  EXPECT_TRUE(a.endpoint->fall_asleep());
}

TEST(UdEndpoint, NumbersOfSourcesBeginWhereTheyShall) {
  DatagramPeer listener({.first_source = 7});
  DatagramPeer senders[2];
  for (std::size_t i = 0; i < 2; ++i) {
    send(*senders[i].to(listener.address), pattern(10, 1));
    ASSERT_EQ(listener.heard(i + 1), i + 1);
  }
  EXPECT_EQ(listener.log.messages[0].arrival.source, 7u);
  EXPECT_EQ(listener.log.messages[1].arrival.source, 8u);
}

TEST(UdEndpoint, TheSourceUnheardOfForLongestMakesRoom) {
  DatagramPeer listener({.first_source = 3, .most_sources = 2});
  DatagramPeer senders[3];
  const auto send_from = [&](int i) {
    send(*senders[i].to(listener.address), pattern(10, 1));
    listener.heard(listener.log.messages.size() + 1);
    return listener.log.messages.back().arrival.source;
  };
  EXPECT_EQ(send_from(0), 3u);
  EXPECT_EQ(send_from(1), 4u);
  EXPECT_EQ(send_from(0), 3u);
  EXPECT_TRUE(listener.log.closed.empty());
  EXPECT_EQ(send_from(2), 4u) << "in place of the second one";
  EXPECT_EQ(listener.log.closed, (std::vector<InboxLog::Closed>{{4, false}}));
  EXPECT_EQ(send_from(1), 3u);
  EXPECT_EQ(listener.log.opened.back().second, senders[1].address);
  EXPECT_EQ(listener.log.opened.size(), 4u);
}

TEST(UdEndpoint, ARefusedSourceIsHeardNoMore) {
  DatagramPeer a;
  DatagramPeer b;
  const auto flow = a.to(b.address);
  send(*flow, pattern(10, 1));
  ASSERT_EQ(b.heard(1), 1u);
  b.endpoint->refuse(b.log, 0);
  b.endpoint->refuse(b.log, 0);
  b.endpoint->refuse(b.log, 5);
  EXPECT_EQ(b.log.closed.size(), 1u);
  send(*flow, pattern(10, 1));
  DatagramPeer c;
  send(*c.to(b.address), pattern(10, 2));
  EXPECT_EQ(b.heard(2), 2u);
  EXPECT_EQ(b.log.messages.back().arrival.source, 1u);
}

TEST(UdEndpoint, DatagramsThatDoNotFitTheSocketAreCounted) {
  DatagramPeer a;
  auto socket = os::UdpSocket::bind(os::loopback(0), {});
  const int small = 20'000;
  ASSERT_EQ(::setsockopt(socket.value().fd(), SOL_SOCKET, SO_RCVBUF, &small, sizeof small), 0);
  DatagramPeer b(std::move(socket).value());
  const auto flow = a.to(b.address);
  for (std::size_t i = 0; i < 100; ++i) send(*flow, Bytes(4096));
  const std::size_t heard = b.heard(100);
  EXPECT_GT(heard, 0u);
  EXPECT_LT(heard, 100u);
  EXPECT_EQ(heard + b.lost(), 100u);
}

}  // namespace
}  // namespace weft::udp
