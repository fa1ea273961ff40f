// SPDX-License-Identifier: BSD-2-Clause
// What becomes of datagrams while shared memory has no room, and afterwards?
#include <gtest/gtest.h>

#include <functional>

#include "base/heard_warnings_support.h"
#include "messaging/endpoint.h"
#include "os/own_process_support.h"
#include "test_support.h"

namespace weft::messaging {
namespace {

using namespace testing;

constexpr int kCount = 10;

// Two endpoints in a /dev/shm of their own. The network does not lead to either.
struct ShortageOfMemory {
  const HeardWarnings warnings;
  Surroundings setup = [] {
    Surroundings wanted{std::move(device::Device::get("/dev/shm/weft")).value()};
    wanted.service = link::Service::kDatagram;
    return wanted;
  }();
  Node one{setup, 7001};
  Node two{setup, 7002};
  PeerIndex to_two = one.addresses.insert(two.address);

  void send(PeerIndex peer, std::size_t length, int (Endpoint::*how)(SendCall&)) {
    const Bytes bytes = pattern(length, 1);
    const LocalRange sge{const_cast<std::byte*>(bytes.data()), bytes.size()};
    SendCall call;
    call.peer = peer;
    call.sges = {&sge, 1};
    call.length = bytes.size();
    EXPECT_EQ((one.endpoint.get()->*how)(call), 0);
    EXPECT_EQ(Node::take(one.tx).size(), 1U);
  }
  void send(std::size_t length) { send(to_two, length, &Endpoint::send_datagram); }
  std::size_t heard() {
    for (int i = 0; i < 20; ++i) two.endpoint->port().progress();
    std::size_t count = 0;
    for (Bytes target(4096);; ++count) {
      ReceiveCall call;
      const LocalRange sge{target.data(), target.size()};
      call.sges = {&sge, 1};
      call.report = {&target};
      EXPECT_EQ(two.endpoint->receives().receive(call), 0);
      if (!Node::take(two.rx).empty()) continue;
      two.endpoint->cancel(&target);
      Node::take(two.rx);
      return count;
    }
  }
  // Sends until one arrives: a peer that was missed is not looked for at once.
  void expect_that_it_goes_on(const std::function<void()>& send_one) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    std::size_t arrived = 0;
    while (arrived == 0 && std::chrono::steady_clock::now() < end) {
      send_one();
      arrived = heard();
    }
    EXPECT_GT(arrived, 0U);
  }
  void expect_lost(int count) {
    const Stats& stats = one.endpoint->stats();
    EXPECT_EQ(stats.of(Stat::kDatagramsNoMemory), static_cast<std::uint64_t>(count));
    EXPECT_EQ(stats.of(Stat::kDatagramsNoPeer), 0U);
    EXPECT_EQ(HeardWarnings::lines.size(), 1U);
    if (HeardWarnings::lines.empty()) return;
    const std::string& line = HeardWarnings::lines[0];
    EXPECT_NE(line.find("datagrams are lost"), std::string::npos) << line;
  }
};

void in_small_memory(const std::function<void(ShortageOfMemory&)>& body) {
  os::in_own_process("a small /dev/shm", [&] {
    if (!os::enter_empty_directories()) return false;
    ShortageOfMemory shortage;
    body(shortage);
    return true;
  });
}

TEST(DatagramShortage, ThoseThatFindNoRoomForAQueueAreCounted) {
  in_small_memory([](ShortageOfMemory& it) {
    {
      const os::FullFileSystem full("/dev/shm");
      for (int i = 0; i < kCount; ++i) it.send(1);
      EXPECT_EQ(it.heard(), 0U);
    }
    it.expect_lost(kCount);
    it.expect_that_it_goes_on([&] { it.send(1); });
  });
}

TEST(DatagramShortage, LongOnesThatFindNoRoomAreCountedAndShortOnesArrive) {
  in_small_memory([](ShortageOfMemory& it) {
    it.send(1);
    EXPECT_EQ(it.heard(), 1U);
    {
      const os::FullFileSystem full("/dev/shm");
      for (int i = 0; i < kCount; ++i) {
        it.send(4096);
        it.send(1);
      }
      EXPECT_EQ(it.heard(), static_cast<std::size_t>(kCount));
    }
    it.expect_lost(kCount);
    it.send(4096);
    EXPECT_EQ(it.heard(), 1U);
  });
}

TEST(DatagramShortage, ThoseForAGroupAreCounted) {
  in_small_memory([](ShortageOfMemory& it) {
    const auto address = os::address_of("224.0.1.129", 5000);
    const auto group = it.one.endpoint->join(address, true, false);
    ASSERT_TRUE(group.ok() && it.two.endpoint->join(address, false, true).ok());
    const auto send_one = [&] { it.send(group.value(), 4096, &Endpoint::send_to_group); };
    {
      const os::FullFileSystem full("/dev/shm");
      for (int i = 0; i < kCount; ++i) send_one();
      EXPECT_EQ(it.heard(), 0U);
    }
    it.expect_lost(kCount);
    it.expect_that_it_goes_on(send_one);
    const os::FullFileSystem again("/dev/shm");
    send_one();
    EXPECT_EQ(it.heard(), 1U) << "the queue is there";
  });
}

}  // namespace
}  // namespace weft::messaging
