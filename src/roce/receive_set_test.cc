// SPDX-License-Identifier: BSD-2-Clause
// Does a datagram arrive at a socket that has been quiet?
#include "roce/receive_set.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <utility>
#include <vector>

#include "os/loopback_support.h"

namespace weft::roce {
namespace {

constexpr unsigned kAll = 64;
constexpr unsigned kLong = 1000;  // takes

// A set of two sockets, and one that sends to the second of them.
struct TwoSockets {
  TwoSockets() {
    set.add({&first, 1});
    set.add({&second, 2});
    set.skip_quiet();
  }
  void send() {
    const std::byte byte{1};
    ASSERT_EQ(sender.send(second.address(), {}, {&byte, 1}, 0).error, 0);
  }
  // Which of them got a datagram in one take().
  std::vector<std::uint64_t> take() {
    std::vector<std::uint64_t> found;
    set.take(kAll, kAll, [&](const ReceiveSocket& socket, const os::Datagram&) {
      found.push_back(socket.group);
    });
    return found;
  }
  void take_nothing() {
    for (unsigned i = 0; i < kLong; ++i) EXPECT_TRUE(take().empty());
  }

  static os::UdpSocket open() {
    return std::move(os::UdpSocket::bind(os::loopback(0), {})).value();
  }

  os::UdpSocket first = open();
  os::UdpSocket second = open();
  os::UdpSocket sender = open();
  ReceiveSet set{4};
};

TEST(QuietSockets, AreReadByOneOfAFewTakes) {
  TwoSockets sockets;
  sockets.take_nothing();
  sockets.send();
  unsigned takes = 1;
  while (sockets.take().empty() && takes < kLong) ++takes;
  EXPECT_LE(takes, 16U);
}

TEST(QuietSockets, AreReadAtOnceAfterASleep) {
  TwoSockets sockets;
  sockets.take_nothing();
  sockets.send();
  sockets.set.attend();
  EXPECT_EQ(sockets.take(), std::vector<std::uint64_t>{2});
}

TEST(QuietSockets, AreReadByEachTakeOnceTheyHaveTraffic) {
  TwoSockets sockets;
  sockets.take_nothing();
  sockets.set.attend();
  for (int i = 0; i < 100; ++i) {
    sockets.send();
    EXPECT_EQ(sockets.take(), std::vector<std::uint64_t>{2});
  }
}

}  // namespace
}  // namespace weft::roce
