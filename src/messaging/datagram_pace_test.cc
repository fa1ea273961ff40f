// SPDX-License-Identifier: BSD-2-Clause
// Does a program hear that it sends too fast, and only then?
#include <gtest/gtest.h>

#include <array>
#include <cstring>

#include "os/udp_socket.h"
#include "test_support.h"

namespace weft::messaging {
namespace {

using namespace testing;

using Packet = std::array<std::byte, 32>;

void append(Bytes& bytes, std::initializer_list<unsigned> more) {
  for (const unsigned each : more) bytes.push_back(static_cast<std::byte>(each));
}

std::uint32_t crc32(const Bytes& bytes) {
  std::uint32_t crc = 0xFFFF'FFFF;
  for (const std::byte each : bytes) {
    crc ^= static_cast<std::uint32_t>(each);
    for (int i = 0; i < 8; ++i) crc = (crc >> 1) ^ ((crc & 1) != 0 ? 0xEDB8'8320 : 0);
  }
  return ~crc;
}

// A congestion notification between two ports of 127.0.0.1, as any peer makes it (IBTA annex A17).
Packet notice(unsigned from, unsigned to) {
  constexpr unsigned kUdp = 8 + Packet{}.size();
  Bytes covered(8, std::byte{0xFF});
  append(covered, {0x45, 0xFF, 0, 20 + kUdp, 0, 0, 0x40, 0, 0xFF, 17, 0xFF, 0xFF});
  append(covered, {127, 0, 0, 1, 127, 0, 0, 1});
  append(covered, {from >> 8, from & 0xFF, to >> 8, to & 0xFF, 0, kUdp, 0xFF, 0xFF});
  const std::size_t begin = covered.size();
  append(covered, {0x81, 0, 0xFF, 0xFF, 0xFF, to >> 8, to & 0xFF, 1, 0, 0, 0, 0});
  covered.resize(begin + 28);
  const std::uint32_t crc = crc32(covered);
  Packet packet;
  std::copy(covered.begin() + static_cast<std::ptrdiff_t>(begin), covered.end(), packet.begin());
  packet[4] = std::byte{0x40};
  std::memcpy(packet.data() + 28, &crc, sizeof crc);
  return packet;
}

TEST(DatagramPace, ASenderThatIsTooFastIsToldToTryAgain) {
  RuntimeDir dir;
  Surroundings setup{std::move(device::Device::get(dir.path())).value()};
  setup.service = link::Service::kDatagram;
  auto port = std::move(os::UdpPort::bind(loopback(0))).value();
  setup.socket = &port;
  Node node(setup, 0);
  ASSERT_NE(node.endpoint, nullptr);
  auto peer = std::move(os::UdpSocket::bind(loopback(0), {})).value();
  const PeerIndex to_peer = node.addresses.insert(peer.address());
  const Bytes bytes(4096);
  const auto send = [&] {
    const LocalRange piece{const_cast<std::byte*>(bytes.data()), bytes.size()};
    SendCall call;
    call.peer = to_peer;
    call.pieces = {&piece, 1};
    call.length = bytes.size();
    const int status = node.endpoint->send_datagram(call);
    node.endpoint->progress();
    const std::size_t ended = Node::take(node.tx).size();
    EXPECT_EQ(ended, status == 0 ? 1u : 0u) << "what is to be sent again has not ended";
    return status;
  };
  for (int i = 0; i < 20; ++i) ASSERT_EQ(send(), 0);
  const Packet complaint = notice(peer.address().port(), node.address.port());
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  int status = 0;
  while (status == 0 && std::chrono::steady_clock::now() < end) {
    ASSERT_EQ(peer.send(node.address, {}, complaint, complaint.size()).error, 0);
    status = send();
  }
  EXPECT_EQ(status, EAGAIN);
  while (status == EAGAIN && std::chrono::steady_clock::now() < end) status = send();
  EXPECT_EQ(status, 0) << "it is a matter of less than a millisecond";
  EXPECT_EQ(node.endpoint->stats().of(Stat::kDatagramsNoRoom), 0u)
      << "nothing was lost that the program believes sent";
}

}  // namespace
}  // namespace weft::messaging
