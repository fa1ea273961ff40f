// SPDX-License-Identifier: BSD-2-Clause
// Does the network serve where shared memory has no room?
#include <gtest/gtest.h>

#include <cerrno>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/heard_warnings_support.h"
#include "device/port.h"
#include "os/own_process_support.h"
#include "port_support.h"

namespace weft::device {
namespace {

using namespace port_testing;

// Two endpoints and their device in a /dev/shm of this process.
void in_small_memory(const std::function<void(const std::shared_ptr<Device>&)>& body) {
  os::in_own_process("a small /dev/shm", [&] {
    if (!os::enter_empty_directories()) return false;
    const HeardWarnings warnings;
    const auto device = Device::get("/dev/shm/weft");
    EXPECT_TRUE(device.ok());
    if (device.ok()) body(device.value());
    return true;
  });
}

class PortShortageTest : public PortTest {
 protected:
  PortShortageTest() { device_.reset(); }
  static void expect_to_meet(End& one, End& two, bool over_the_network) {
    static const std::string large(kLarge, 'x');  // outlives its retransmissions
    one.send(two, "hello");
    one.send(two, large);
    EXPECT_TRUE(poll_until({&one, &two}, [&] { return messages_at(two) == 2; }));
    EXPECT_EQ(one.to(two).process() == 0, over_the_network);
  }
  static void expect_one_warning() {
    ASSERT_EQ(HeardWarnings::lines.size(), 1U);
    const std::string& line = HeardWarnings::lines[0];
    EXPECT_NE(line.find("network"), std::string::npos) << line;
    EXPECT_NE(line.find("No space left"), std::string::npos) << line;
  }
};

TEST_F(PortShortageTest, WithoutRoomForTheTablePeersMeetOverTheNetwork) {
  os::in_own_process("a small /dev/shm", [&] {
    if (!os::enter_empty_directories("nr_inodes=1")) return false;
    const HeardWarnings warnings;
    const auto device = Device::get("/dev/shm/weft").value();
    {
      End one(device, kBoth);
      End two(device, kBoth);
      expect_to_meet(one, two, true);
    }
    expect_one_warning();
    return true;
  });
}

TEST_F(PortShortageTest, WithoutRoomForAMailboxAnEndpointIsMetOverTheNetwork) {
  in_small_memory([](const auto& device) {
    End early(device, kBoth);
    const os::FullFileSystem full("/dev/shm");
    End one(device, kBoth);
    End two(device, kBoth);
    expect_to_meet(one, two, true);
    expect_to_meet(one, early, true);
    expect_to_meet(early, two, true);
    expect_one_warning();
    const auto socket = std::move(os::UdpPort::bind(os::loopback(0))).value();
    PortSetup options;
    options.name = socket.address();
    const auto alone = Port::open(device, {socket, kShm}, options);
    ASSERT_FALSE(alone.ok());
    EXPECT_EQ(alone.error().code, ENOSPC);
  });
}

TEST_F(PortShortageTest, WithoutRoomForItsQueueAPeerIsMetOverTheNetwork) {
  in_small_memory([](const auto& device) {
    End one(device, kBoth);
    End two(device, kBoth);
    End near(device, kShm);
    {
      const os::FullFileSystem full("/dev/shm");
      expect_to_meet(one, two, true);
      expect_one_warning();
      const auto way = one.port->connect(near.socket.address());
      EXPECT_FALSE(way.ok()) << "it is not in the network";
    }
    expect_to_meet(one, near, false);
  });
}

TEST_F(PortShortageTest, AnAddressInUseIsNoLackOfRoom) {
  in_small_memory([](const auto& device) {
    const End one(device, kBoth);
    PortSetup options;
    options.name = one.socket.address();
    const auto other = Port::open(device, {one.socket, kBoth}, options);
    ASSERT_FALSE(other.ok());
    EXPECT_EQ(other.error().code, EADDRINUSE);
    EXPECT_TRUE(HeardWarnings::lines.empty());
  });
}

}  // namespace
}  // namespace weft::device
