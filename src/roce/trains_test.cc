// SPDX-License-Identifier: BSD-2-Clause
// Which packets leave together?
#include "roce/trains.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <vector>

#include "os/event.h"
#include "os/loopback_support.h"
#include "os/udp_batch.h"
#include "roce/route.h"
#include "wire/packet.h"

namespace weft::roce {
namespace {

constexpr std::size_t kLength = 1400;

class TrainsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (sender_.segments_per_train(kLength) == 1) GTEST_SKIP() << "this system sends no trains";
  }
  void add(std::size_t count, std::size_t length = kLength) {
    for (std::size_t i = 0; i < count; ++i) {
      const std::span<std::byte> place = trains_.place();
      ASSERT_GE(place.size(), length);
      std::fill_n(place.begin(), length, std::byte{0x5A});
      trains_.add(path_, length);
    }
  }
  // The lengths, in packets, of the trains of so many packets that have left.
  std::vector<std::size_t> arrived(std::size_t packets) {
    std::vector<std::size_t> lengths;
    std::size_t count = 0;
    while (count < packets && os::wait_readable(receiver_.fd(), std::chrono::seconds(20))) {
      EXPECT_EQ(receiver_.receive(batch_), 0);
      for (const os::ReceivedDatagrams& one : batch_.arrivals()) {
        lengths.push_back(one.datagrams());
        count += one.datagrams();
      }
    }
    EXPECT_EQ(count, packets);
    return lengths;
  }

  os::UdpSocket sender_ = os::UdpSocket::bind(os::address_of("127.0.0.1", 0), {}).value();
  os::UdpSocket receiver_ = os::UdpSocket::bind(os::address_of("127.0.0.1", 0), {}).value();
  const Path path_{sender_.address(), receiver_.address(),
                   route_between(sender_.address(), receiver_.address())};
  os::UdpBatch batch_{16};
  Trains trains_{sender_, nullptr};
};

using Lengths = std::vector<std::size_t>;

TEST_F(TrainsTest, AsManyLeaveTogetherAsOneTrainTakes) {
  const std::size_t most = sender_.segments_per_train(kLength + wire::kIcrcBytes);
  add(most + 3);
  trains_.flush();
  EXPECT_EQ(arrived(most + 3), (Lengths{most, 3}));
}

TEST_F(TrainsTest, ThoseThatAreExpectedLeaveInTrainsOfOneLength) {
  const std::size_t most = sender_.segments_per_train(kLength + wire::kIcrcBytes);
  trains_.expect(most + 3);
  const std::size_t half = (most + 4) / 2;
  add(half);
  EXPECT_TRUE(trains_.empty()) << "the first has left, though it could be longer";
  trains_.expect(most + 3 - half);
  add(most + 3 - half);
  trains_.flush();
  EXPECT_EQ(arrived(most + 3), (Lengths{half, most + 3 - half}));
}

TEST_F(TrainsTest, OthersJoinTheLastOfThoseThatWereExpected) {
  trains_.expect(3);
  add(3);
  add(2, kLength - 4);
  trains_.flush();
  EXPECT_EQ(arrived(5), (Lengths{4, 1}));  // a shorter one is the last
}

}  // namespace
}  // namespace weft::roce
