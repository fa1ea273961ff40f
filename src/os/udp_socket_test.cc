// SPDX-License-Identifier: BSD-2-Clause
// Do datagrams arrive once and whole, by the train or alone, with the truth about where from?
#include "os/udp_socket.h"
#include "os/loopback_support.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <netinet/udp.h>
#include <poll.h>
#include <sched.h>

#include <chrono>
#include <random>
#include <vector>

#include "os/event.h"
#include "os/udp_path.h"

namespace weft::os {
namespace {

using Bytes = std::vector<std::byte>;

// What a test keeps of a datagram.
struct Kept {
  SocketAddress from;
  SocketAddress to;
  int traffic_class;
  std::size_t index;
  Bytes bytes;
};

Bytes some_bytes(std::size_t size, unsigned seed = 1) {
  std::minstd_rand random(seed);
  Bytes bytes(size);
  for (std::byte& byte : bytes) byte = static_cast<std::byte>(random() >> 8);
  return bytes;
}

class UdpSocketTest : public ::testing::TestWithParam<int> {
 protected:
  void SetUp() override {
    if (!UdpSocket::bind(local(), {}).ok()) GTEST_SKIP() << "this system has no IPv6 loopback";
    // The loopback keeps the order of what one processor sends.
    ASSERT_EQ(::sched_getaffinity(0, sizeof processors_, &processors_), 0);
    cpu_set_t here;
    CPU_ZERO(&here);
    CPU_SET(::sched_getcpu(), &here);
    ASSERT_EQ(::sched_setaffinity(0, sizeof here, &here), 0);
  }
  void TearDown() override {
    if (!IsSkipped()) ::sched_setaffinity(0, sizeof processors_, &processors_);
  }
  SocketAddress local(std::uint16_t port = 0) const {
    return address_of(GetParam() == AF_INET6 ? "::1" : "127.0.0.1", port);
  }
  SocketAddress anywhere() const { return address_of(GetParam() == AF_INET6 ? "::" : "0.0.0.0"); }
  UdpSocket bound(const UdpSocket::SocketOptions& options = {}) const {
    return UdpSocket::bind(local(), options).value();
  }
  // So many datagrams, which have left already, and whatever else is there then.
  std::vector<Kept> arrived(const UdpSocket& at, std::size_t wanted) {
    std::vector<Kept> all;
    while (all.size() < wanted && wait_readable(at.fd(), std::chrono::seconds(20))) {
      EXPECT_EQ(at.receive(batch_), 0);
      keep(all);
    }
    EXPECT_EQ(at.receive(batch_), 0);
    keep(all);
    return all;
  }
  void keep(std::vector<Kept>& all) {
    batch_.for_each([&](const Datagram& one) {
      all.push_back(
          {one.from, one.to, one.traffic_class, one.index, {one.bytes.begin(), one.bytes.end()}});
    });
  }
  // Sends to an unbound port, and returns its address when the ICMP error has arrived.
  SocketAddress send_to_closed_port(UdpSocket& sender) {
    const SocketAddress closed = bound().address();
    EXPECT_EQ(sender.send(closed, {}, some_bytes(5), 0).error, 0);
    expect_error_waits(sender);
    return closed;
  }
  static void expect_error_waits(const UdpSocket& socket) {
    pollfd ready{.fd = socket.fd(), .events = 0, .revents = 0};
    EXPECT_EQ(::poll(&ready, 1, 20'000), 1);
    EXPECT_EQ(ready.revents, POLLERR);
  }
  // Sends and expects exactly these datagrams at the other socket.
  void expect_delivery(UdpSocket& from, const UdpSocket& to, std::size_t total,
                       std::size_t segment) {
    const Bytes sent = some_bytes(total, static_cast<unsigned>(total + segment));
    const SendOutcome outcome = from.send(to.address(), {}, sent, segment);
    const std::size_t datagrams = (total + segment - 1) / segment;
    EXPECT_EQ(outcome.error, 0);
    EXPECT_EQ(outcome.bytes, total);
    EXPECT_EQ(outcome.datagrams, datagrams);
    const std::vector<Kept> got = arrived(to, datagrams);
    ASSERT_EQ(got.size(), datagrams);
    for (std::size_t i = 0; i < datagrams; ++i) {
      const std::size_t size = std::min(segment, total - i * segment);
      const auto first = sent.begin() + static_cast<std::ptrdiff_t>(i * segment);
      ASSERT_EQ(got[i].bytes, Bytes(first, first + static_cast<std::ptrdiff_t>(size))) << i;
    }
  }

  UdpBatch batch_{8};
  cpu_set_t processors_{};
};

INSTANTIATE_TEST_SUITE_P(Family, UdpSocketTest, ::testing::Values(AF_INET, AF_INET6),
                         [](const auto& family) { return family.param == AF_INET ? "v4" : "v6"; });

TEST_P(UdpSocketTest, ADatagramOfAnySizeArrivesOnceAndWhole) {
  UdpSocket sender = bound();
  const UdpSocket receiver = bound();
  for (const std::size_t size : {0, 1, 1500, 60'000}) {
    const Bytes sent = some_bytes(size);
    const SendOutcome outcome = sender.send(receiver.address(), {}, sent, 0);
    EXPECT_EQ(outcome.error, 0) << size;
    EXPECT_EQ(outcome.datagrams, 1U);
    EXPECT_EQ(outcome.bytes, size);
    const std::vector<Kept> got = arrived(receiver, 1);
    ASSERT_EQ(got.size(), 1U) << size;
    EXPECT_EQ(got[0].bytes, sent);
    EXPECT_EQ(got[0].index, 0U);
    EXPECT_EQ(got[0].from, sender.address());
    EXPECT_EQ(got[0].to, receiver.address());
  }
}

TEST_P(UdpSocketTest, ATrainArrivesAsItsDatagramsJoinedOnTheWayOrNot) {
  for (const bool merging : {true, false}) {
    UdpSocket sender = bound();
    const UdpSocket receiver = bound({.merging = merging});
    for (const std::size_t datagrams : {2, 64, 65, 130}) {
      expect_delivery(sender, receiver, datagrams * 100 - 63, 100);
      expect_delivery(sender, receiver, datagrams * 100, 100);
    }
    expect_delivery(sender, receiver, 200'000, 4'156);   // trains that bytes limit, not datagrams
    expect_delivery(sender, receiver, 130'001, 65'000);  // too large for trains
  }
}

TEST_P(UdpSocketTest, WithoutTrainsTheSameArrives) {
  UdpSocket sender = bound({.trains = false});
  EXPECT_FALSE(sender.trains());
  const UdpSocket receiver = bound();
  for (const std::size_t datagrams : {2, 64, 65, 130}) {
    expect_delivery(sender, receiver, datagrams * 100 - 63, 100);
  }
}

// The kernel segments nothing that has no UDP checksum; interfaces without a way to sum up are the
// same.
TEST_P(UdpSocketTest, ARefusedTrainIsReportedBeforeAnythingLeaves) {
  UdpSocket sender = bound();
  if (!sender.trains()) GTEST_SKIP() << "this kernel has no trains";
  const UdpSocket receiver = bound();
  const int on = 1;
  const bool six = GetParam() == AF_INET6;
  ASSERT_EQ(::setsockopt(sender.fd(), six ? SOL_UDP : SOL_SOCKET,
                         six ? UDP_NO_CHECK6_TX : SO_NO_CHECK, &on, sizeof on),
            0);
  const SendOutcome refused = sender.send(receiver.address(), {}, some_bytes(950), 100);
  EXPECT_EQ(refused.error, EOPNOTSUPP);
  EXPECT_EQ(refused.datagrams, 0U);
  EXPECT_FALSE(sender.trains());
  EXPECT_EQ(sender.segments_per_train(100), 1U);
  EXPECT_EQ(sender.identification(7, 100), 0);
  expect_delivery(sender, receiver, 950, 100);
}

TEST_P(UdpSocketTest, ADatagramOfOneBufferKeepsItsPlaceInTheTrain) {
  UdpSocket sender = bound();
  if (!sender.trains()) GTEST_SKIP() << "this kernel has no trains";
  const UdpSocket receiver = bound();
  EXPECT_EQ(sender.segments_per_train(100), 64U);
  EXPECT_EQ(sender.segments_per_train(4'156), 15U);
  EXPECT_EQ(sender.segments_per_train(65'000), 1U);
  ASSERT_EQ(sender.send(receiver.address(), {}, some_bytes(6'950), 100).error, 0);
  const std::vector<Kept> got = arrived(receiver, 70);
  ASSERT_EQ(got.size(), 70U);
  for (std::size_t i = 0; i < got.size(); ++i) {
    EXPECT_EQ(got[i].index, i % 64) << i;
    EXPECT_EQ(sender.identification(i, 100), i % 64) << i;
  }
}

TEST_P(UdpSocketTest, AtTheWildcardAddressBothAddressesAreTheRealOnes) {
  const UdpSocket receiver = UdpSocket::bind(anywhere(), {}).value();
  UdpSocket sender = UdpSocket::bind(anywhere(), {}).value();
  const std::uint16_t port = receiver.address().port();
  ASSERT_EQ(sender.send(local(port), {}, some_bytes(9), 3).error, 0);
  const std::vector<Kept> got = arrived(receiver, 3);
  ASSERT_EQ(got.size(), 3U);
  EXPECT_EQ(got[0].from, local(sender.address().port()));
  EXPECT_EQ(got[2].to, local(port));
}

TEST_P(UdpSocketTest, TheSourceAddressCanBeChosenAndOneOfAnotherHostIsRefused) {
  const bool six = GetParam() == AF_INET6;
  UdpSocket sender = UdpSocket::bind(anywhere(), {}).value();
  const bool trains = sender.trains();
  const UdpSocket receiver = bound();
  // All of 127.0.0.0/8 is this host's; of IPv6 only ::1 is.
  SocketAddress from = address_of(six ? "::1" : "127.0.0.7");
  ASSERT_EQ(sender.send(receiver.address(), from, some_bytes(7), 3).error, 0);
  const std::vector<Kept> got = arrived(receiver, 3);
  ASSERT_EQ(got.size(), 3U);
  from.set_port(sender.address().port());
  for (const Kept& one : got) EXPECT_EQ(one.from, from);

  from = address_of(six ? "2001:db8::7" : "192.0.2.7");
  for (const std::size_t segment : {0, 3}) {
    const SendOutcome outcome = sender.send(receiver.address(), from, some_bytes(7), segment);
    EXPECT_NE(outcome.error, 0);
    EXPECT_EQ(outcome.datagrams, 0U);
  }
  EXPECT_EQ(sender.trains(), trains) << "a wrong address says nothing about trains";
}

TEST_P(UdpSocketTest, TheTrafficClassArrivesWithItsEcnBits) {
  const UdpSocket receiver = bound();
  for (const std::uint8_t traffic_class : {0, 1, 2, 3, 48 << 2 | 2}) {
    UdpSocket sender = bound({.traffic_class = traffic_class});
    ASSERT_EQ(sender.send(receiver.address(), {}, some_bytes(20), 10).error, 0);
    const std::vector<Kept> got = arrived(receiver, 2);
    ASSERT_EQ(got.size(), 2U);
    for (const Kept& one : got) EXPECT_EQ(one.traffic_class, traffic_class);
  }
}

TEST_P(UdpSocketTest, NothingToReadIsNoError) {
  const UdpSocket socket = bound();
  EXPECT_EQ(socket.receive(batch_), 0);
  EXPECT_TRUE(batch_.arrivals().empty());
  EXPECT_FALSE(batch_.errors_waiting());
  EXPECT_EQ(batch_.truncated(), 0U);
  EXPECT_FALSE(socket.next_error().has_value());
}

TEST_P(UdpSocketTest, AClosedPortIsReportedAndDisturbsNoOtherPeer) {
  UdpSocket sender = bound();
  const UdpSocket receiver = bound();
  const SocketAddress closed = send_to_closed_port(sender);
  const SendOutcome other = sender.send(receiver.address(), {}, some_bytes(5), 2);
  EXPECT_EQ(other.error, 0);
  EXPECT_EQ(other.datagrams, 3U);
  EXPECT_TRUE(other.errors_waiting);
  EXPECT_EQ(arrived(receiver, 3).size(), 3U);

  const auto error = sender.next_error();
  ASSERT_TRUE(error.has_value());
  EXPECT_EQ(error->what, UdpError::What::kPortUnreachable);
  EXPECT_EQ(error->peer, closed);
  EXPECT_EQ(error->code, ECONNREFUSED);
  EXPECT_FALSE(sender.next_error().has_value());
  EXPECT_FALSE(sender.send(receiver.address(), {}, some_bytes(5), 0).errors_waiting);
}

TEST_P(UdpSocketTest, AClosedPortDisturbsNoReceiver) {
  UdpSocket socket = bound();
  UdpSocket friendly = bound();
  send_to_closed_port(socket);
  ASSERT_EQ(friendly.send(socket.address(), {}, some_bytes(5), 0).error, 0);
  pollfd ready{.fd = socket.fd(), .events = POLLIN, .revents = 0};
  while ((ready.revents & POLLIN) == 0) ASSERT_EQ(::poll(&ready, 1, 20'000), 1);
  EXPECT_EQ(socket.receive(batch_), 0);
  EXPECT_EQ(batch_.arrivals().size(), 1U);
  EXPECT_TRUE(batch_.errors_waiting());
  EXPECT_TRUE(socket.next_error().has_value());
}

// Single datagrams bring errors back while the others are still leaving.
TEST_P(UdpSocketTest, ManyDatagramsToAClosedPortAllLeave) {
  UdpSocket sender = bound({.trains = false});
  const SocketAddress closed = bound().address();
  bool reported = false;
  for (int i = 0; i < 20 || (!reported && i < 1'000'000); ++i) {
    const SendOutcome outcome = sender.send(closed, {}, some_bytes(100), 10);
    ASSERT_EQ(outcome.error, 0);
    EXPECT_EQ(outcome.datagrams, 10U);
    reported |= outcome.errors_waiting;
  }
  EXPECT_TRUE(reported);
  while (const auto error = sender.next_error()) EXPECT_EQ(error->peer, closed);
}

TEST_P(UdpSocketTest, ADatagramTooLargeIsRefusedWithTheMtuAndTheNextOneLeaves) {
  UdpSocket sender = bound();
  const UdpSocket receiver = bound();
  const SendOutcome large = sender.send(receiver.address(), {}, some_bytes(65'520), 0);
  EXPECT_EQ(large.error, EMSGSIZE);
  EXPECT_EQ(large.datagrams, 0U);
  EXPECT_EQ(large.path_mtu, udp_path_to(receiver.address()).value().mtu);
  EXPECT_FALSE(sender.next_error().has_value()) << "what the call told is not told twice";
  expect_delivery(sender, receiver, 300, 100);
}

TEST_P(UdpSocketTest, AnAddressOfTheOtherFamilyIsRefused) {
  UdpSocket sender = bound();
  const SocketAddress other =
      GetParam() == AF_INET ? address_of("::1", 9) : address_of("127.0.0.1", 9);
  EXPECT_EQ(sender.send(other, {}, some_bytes(5), 0).error, EAFNOSUPPORT);
  EXPECT_EQ(sender.send(sender.address(), other, some_bytes(5), 0).error, EAFNOSUPPORT);
  EXPECT_EQ(sender.send({}, {}, some_bytes(5), 0).error, EAFNOSUPPORT);
}

TEST_P(UdpSocketTest, PortZeroIsRefusedAndTrainsGoOn) {
  UdpSocket sender = bound();
  const bool trains = sender.trains();
  EXPECT_EQ(sender.send(local(0), {}, some_bytes(5), 2).error, EINVAL);
  EXPECT_EQ(sender.trains(), trains);
}

TEST_P(UdpSocketTest, AFloodFromOtherHostsIsReadAsItWasSent) {
  const UdpSocket receiver = bound();
  UdpSocket stranger = bound();
  std::minstd_rand random(4711);
  for (int i = 0; i < 1'000; ++i) {
    const Bytes sent = some_bytes(random() % 3'000, random());
    const std::size_t segment = random() % 4 == 0 ? 0 : 30 + random() % 400;
    const SendOutcome outcome = stranger.send(receiver.address(), {}, sent, segment);
    ASSERT_EQ(outcome.error, 0);
    const std::vector<Kept> got = arrived(receiver, outcome.datagrams);
    ASSERT_EQ(got.size(), outcome.datagrams);
    Bytes joined;
    for (const Kept& one : got) joined.insert(joined.end(), one.bytes.begin(), one.bytes.end());
    ASSERT_EQ(joined, sent);
  }
  EXPECT_EQ(batch_.truncated(), 0U);
}

TEST_P(UdpSocketTest, DatagramsBeyondTheReceiveBufferAreLostAndLaterOnesArrive) {
  UdpSocket sender = bound();
  const UdpSocket receiver = bound();
  const Bytes train = some_bytes(60'000);
  std::size_t sent = 0;
  for (; sent <= 2 * receiver.receive_buffer(); sent += train.size()) {
    ASSERT_EQ(sender.send(receiver.address(), {}, train, 1'000).error, 0);
  }
  std::size_t got = 0;
  Bytes last;
  const auto drain = [&] {
    for (const Kept& one : arrived(receiver, 1)) {
      last = one.bytes;
      got += last.size();
    }
  };
  drain();
  EXPECT_GT(got, 0U);
  // Small ones follow until one of them has got through, behind all others.
  do {
    ASSERT_EQ(sender.send(receiver.address(), {}, some_bytes(7), 0).error, 0);
    drain();
  } while (last.size() != 7);
  EXPECT_LT(got, sent);
}

TEST_P(UdpSocketTest, ABatchTakesWhatFitsAndLeavesTheRest) {
  UdpSocket sender = bound({.trains = false});
  const UdpSocket receiver = bound();
  UdpBatch small(2);
  ASSERT_EQ(sender.send(receiver.address(), {}, some_bytes(30), 10).error, 0);
  for (std::size_t got = 0; got < 3; got += small.arrivals().size()) {
    ASSERT_TRUE(wait_readable(receiver.fd(), std::chrono::seconds(20)));
    EXPECT_EQ(receiver.receive(small), 0);
    EXPECT_LE(small.arrivals().size(), 2U);
  }
  EXPECT_EQ(receiver.receive(small), 0);
  EXPECT_TRUE(small.arrivals().empty());
}

TEST_P(UdpSocketTest, ItsDescriptorIsReadyWhenSomethingArrivedAndClosesWithIt) {
  UdpSocket sender = bound();
  int closed = -1;
  {
    const UdpSocket receiver = bound();
    closed = receiver.fd();
    pollfd ready{.fd = closed, .events = POLLIN, .revents = 0};
    EXPECT_EQ(::poll(&ready, 1, 0), 0);
    ASSERT_EQ(sender.send(receiver.address(), {}, some_bytes(1), 0).error, 0);
    EXPECT_EQ(::poll(&ready, 1, 20'000), 1);
    EXPECT_EQ(::fcntl(closed, F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
  }
  EXPECT_EQ(::fcntl(closed, F_GETFD), -1);
}

TEST_P(UdpSocketTest, APortThatIsHeldIsRefused) {
  const UdpSocket first = bound();
  const auto second = UdpSocket::bind(first.address(), {});
  ASSERT_FALSE(second.ok());
  EXPECT_EQ(second.error().code, EADDRINUSE);
  EXPECT_GT(first.receive_buffer(), 0U);
}

TEST_P(UdpSocketTest, TheWayToALocalPeerIsTheLoopback) {
  const auto path = udp_path_to(local(4791));
  ASSERT_TRUE(path.ok()) << path.error().message;
  EXPECT_EQ(path.value().source, local());
  EXPECT_GE(path.value().mtu, 1'280U);
  EXPECT_EQ(udp_path_to(local(0)).value().mtu, path.value().mtu);
  EXPECT_EQ(udp_path_to(local(0), local(7)).value().source, local());
  const auto stranger = address_of(GetParam() == AF_INET ? "192.0.2.7" : "2001:db8::7");
  EXPECT_EQ(udp_path_to(local(4791), stranger).error().code, EADDRNOTAVAIL);
}

TEST(UdpSocket, AnIpv6DatagramWithoutAChecksumIsTaken) {
  const auto receiver = UdpSocket::bind(address_of("::1"), {});
  if (!receiver.ok()) GTEST_SKIP() << "this system has no IPv6 loopback";
  const Fd plain(::socket(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  const int on = 1;
  ASSERT_EQ(::setsockopt(plain.get(), SOL_UDP, UDP_NO_CHECK6_TX, &on, sizeof on), 0);
  const SocketAddress to = receiver.value().address();
  ASSERT_EQ(::sendto(plain.get(), "rxe", 3, 0, to.get(), to.length()), 3);
  UdpBatch batch(1);
  ASSERT_TRUE(wait_readable(receiver.value().fd(), std::chrono::seconds(20)));
  EXPECT_EQ(receiver.value().receive(batch), 0);
  ASSERT_EQ(batch.arrivals().size(), 1U);
  EXPECT_EQ(batch.arrivals()[0].bytes.size(), 3U);
}

TEST(UdpSocket, BothFamiliesMayHoldTheSamePort) {
  const auto six = UdpSocket::bind(address_of("::"), {});
  if (!six.ok()) GTEST_SKIP() << "this system has no IPv6";
  const auto four = UdpSocket::bind(address_of("0.0.0.0", six.value().address().port()), {});
  EXPECT_TRUE(four.ok()) << four.error().message;
}

TEST(UdpSocket, NoAddressAtAllIsRefused) { EXPECT_FALSE(UdpSocket::bind({}, {}).ok()); }

}  // namespace
}  // namespace weft::os
