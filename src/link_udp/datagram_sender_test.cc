// SPDX-License-Identifier: BSD-2-Clause
// Which datagrams leave at once, and which wait to share a train?
#include "datagram_sender.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <vector>

#include "os/event.h"
#include "os/loopback_support.h"
#include "roce/route.h"

namespace weft::udp {
namespace {

using std::chrono::microseconds;

struct DatagramSenderTest : ::testing::Test {
  os::WakeSet wake = std::move(os::WakeSet::create()).value();
  std::unique_ptr<roce::PacketPort> from =
      std::move(roce::PacketPort::open(std::move(os::UdpSocket::bind(os::loopback(0), {})).value(),
                                       wake, {}))
          .value();
  os::UdpSocket to = std::move(os::UdpSocket::bind(os::loopback(0), {})).value();
  DatagramSender sender{*from, 1};
  DatagramTarget target{
      {from->address(), to.address(), roce::route_between(from->address(), to.address())}, 2};
  os::Time now{std::chrono::hours(1)};

  link::Outcome send(bool may_linger = true) {
    std::byte bytes[64] = {};
    const LocalRange sge{bytes, sizeof bytes};
    link::SendRequest request;
    request.operation = link::MessageOperation::kDatagram;
    request.may_linger = may_linger;
    request.sges = {&sge, 1};
    request.length = sizeof bytes;
    return sender.send_at(target, request, now);
  }
  // Tells of each of so many sends in a row whether it left.
  std::vector<bool> left(int sends, bool may_linger = true) {
    std::vector<bool> all;
    for (int i = 0; i < sends; ++i) {
      EXPECT_EQ(send(may_linger).state, link::Outcome::State::kDone);
      all.push_back(!sender.has_kept());
    }
    return all;
  }
  std::size_t arrived(std::size_t expected) {
    os::UdpBatch batch(4);
    std::size_t datagrams = 0;
    while (datagrams < expected && os::wait_readable(to.fd(), std::chrono::seconds(20)) &&
           to.receive(batch) == 0) {
      batch.for_each([&](const os::Datagram&) { ++datagrams; });
    }
    return datagrams;
  }
};

TEST_F(DatagramSenderTest, TheFirstTwoLeaveAndOthersWaitForAPoll) {
  for (int round = 0; round < 2; ++round) {
    EXPECT_EQ(left(4), (std::vector<bool>{true, true, false, false}));
    sender.poll();
    EXPECT_FALSE(sender.has_kept());
    EXPECT_EQ(arrived(4), 4u);
  }
}

TEST_F(DatagramSenderTest, APauseEndsABurst) {
  EXPECT_EQ(left(3), (std::vector<bool>{true, true, false}));
  now += microseconds(10);
  EXPECT_EQ(left(1), (std::vector<bool>{false}));
  now += microseconds(21);
  EXPECT_EQ(left(3), (std::vector<bool>{true, true, false}));
  for (int i = 0; i < 10; ++i) {
    now += microseconds(21);
    EXPECT_EQ(left(1), (std::vector<bool>{true}));
  }
  EXPECT_EQ(arrived(17), 17u);
}

TEST_F(DatagramSenderTest, AFullTrainLeaves) {
  left(2);
  std::size_t kept = 0;
  do {
    ++kept;
    send();
    ASSERT_LE(kept, os::UdpSocket::kMaxSegments);
  } while (sender.has_kept());
  EXPECT_EQ(kept, to.segments_per_train(100));
  EXPECT_EQ(arrived(2 + kept), 2 + kept);
}

TEST_F(DatagramSenderTest, ADatagramThatMayNotLingerTakesTheOthersAlong) {
  EXPECT_EQ(left(3), (std::vector<bool>{true, true, false}));
  EXPECT_EQ(left(2, false), (std::vector<bool>{true, true}));
  EXPECT_EQ(arrived(5), 5u);
}

TEST_F(DatagramSenderTest, WhileNothingIsKeptAllLeave) {
  sender.keep_nothing();
  EXPECT_EQ(left(4), (std::vector<bool>{true, true, true, true}));
  sender.poll();
  EXPECT_EQ(left(3), (std::vector<bool>{true, true, false}));
  sender.finish();
  EXPECT_EQ(arrived(7), 7u);
}

}  // namespace
}  // namespace weft::udp
