// SPDX-License-Identifier: BSD-2-Clause
// Are foreign peers' packets handed on though the endpoint that has their port never polls?
#include "relay_engine.h"

#include <gtest/gtest.h>

#include <array>
#include <span>
#include <thread>

#include "device/device.h"
#include "device/port.h"
#include "link/place.h"
#include "os/event.h"
#include "os/local_name.h"
#include "os/loopback_support.h"
#include "os/thread_count_support.h"
#include "os/udp_batch.h"
#include "os/udp_socket.h"
#include "roce/route.h"
#include "wire/icrc.h"
#include "wire/packet.h"

namespace weft::device {
namespace {

// A port for datagrams at an address of this test's own.
struct Holder {
  explicit Holder(const os::SocketAddress& at, bool foreign_peers = true)
      : device(Device::get("").value()), socket(os::UdpPort::bind(at).value()) {
    PortSetup options;
    options.name = socket.address();
    options.domain = device->new_domain();
    options.service = link::Service::kDatagram;
    settings.foreign_peers = foreign_peers;
    options.options = &settings;
    port = std::move(Port::open(device, {socket, {false, true}}, options)).value();
  }
  Options settings;
  std::shared_ptr<Device> device;
  os::UdpPort socket;
  std::unique_ptr<Port> port;
};

// What a foreign peer sends from `own` to port 4791 for the endpoint of another port: UD SEND Only
// (0x64), partition 0xFFFF, the queue pair, its own one at the end, and the ICRC.
std::array<std::byte, 28> packet_for(std::uint16_t port, const os::SocketAddress& own,
                                     const os::SocketAddress& relay) {
  std::array<std::byte, 28> bytes{};
  const std::uint32_t queue_pair = roce::queue_pair_at(port);
  bytes[0] = std::byte{0x64};
  bytes[2] = bytes[3] = std::byte{0xFF};
  for (unsigned i = 0; i < 3; ++i)
    bytes[5 + i] = static_cast<std::byte>(queue_pair >> (16 - 8 * i));
  bytes[19] = std::byte{0x11};
  const std::span<const std::byte> covered(bytes.data(), bytes.size() - wire::kIcrcBytes);
  wire::store_icrc(bytes.data() + covered.size(),
                   wire::icrc(roce::route_between(own, relay), covered));
  return bytes;
}

TEST(RelayEngine, PacketsForOthersAreHandedOnThoughTheHolderNeverPolls) {
  const os::SocketAddress host = os::address_of("127.47.91.1", 0);
  const Holder holder(host);
  auto other = std::move(os::UdpSocket::bind(host, {})).value();
  // By that name the relay knows an endpoint of Weft.
  const auto name = os::LocalName::claim("weft/datagrams/" + other.address().text());
  ASSERT_TRUE(name.ok());
  auto foreign = std::move(os::UdpSocket::bind(host, {.trains = false})).value();
  for (int i = 0; i < 3; ++i) {
    const auto relay = os::address_of("127.47.91.1", 4791);
    const auto bytes = packet_for(other.address().port(), foreign.address(), relay);
    ASSERT_EQ(foreign.send(relay, {}, bytes, bytes.size()).error, 0);
    ASSERT_TRUE(os::wait_readable(other.fd(), std::chrono::seconds(20)));
    os::UdpBatch batch(1);
    other.receive(batch);
    EXPECT_EQ(batch.arrivals()[0].from, relay);
    // The thread sleeps by now, or will.
    std::this_thread::sleep_for(std::chrono::milliseconds(5 * i));
  }
}

TEST(RelayEngine, TakeNoThreadWhereForeignPeersAreNotWanted) {
  // A sanitizer begins a thread of its own with the first one.
  std::thread([] {}).join();
  const std::size_t before = os::count_threads();
  const Holder deaf(os::address_of("127.47.91.2", 0), false);
  EXPECT_EQ(os::count_threads(), before);
  {
    const Holder holder(os::address_of("127.47.91.2", 0));
    EXPECT_EQ(os::count_threads(), before + 1);
    const Holder second(os::address_of("127.47.91.3", 0));
    EXPECT_EQ(os::count_threads(), before + 1);
  }
  EXPECT_EQ(os::count_threads(), before);
}

}  // namespace
}  // namespace weft::device
