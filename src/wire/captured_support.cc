// SPDX-License-Identifier: BSD-2-Clause
// Which RoCEv2 packets are in a capture?
#include "captured.h"

#include <gtest/gtest.h>
#include <pcap/pcap.h>

#include <algorithm>
#include <memory>
#include <optional>

#include "wire/endian.h"
#include "wire/packet.h"

namespace weft::wire::testing {
namespace {

constexpr std::size_t kEthernetBytes = 14;
constexpr std::size_t kUdpBytes = 8;

// The packet in a frame; nothing when it is no UDP packet to RoCE's port.
std::optional<Captured> unwrap(std::span<const std::byte> frame) {
  const auto ip = frame.subspan(kEthernetBytes);
  Captured packet;
  packet.route.v6 = load<std::uint8_t>(ip.data()) >> 4 == 6;
  const std::size_t ip_bytes = packet.route.v6 ? 40 : 20;
  if (ip.size() < ip_bytes + kUdpBytes ||
      load<std::uint8_t>(ip.data() + (packet.route.v6 ? 6 : 9)) != 17) {
    return std::nullopt;
  }
  const std::size_t address = packet.route.v6 ? 16 : 4;
  const std::byte* addresses = ip.data() + (packet.route.v6 ? 8 : 12);
  std::copy_n(addresses, address, packet.route.source.begin());
  std::copy_n(addresses + address, address, packet.route.destination.begin());
  if (!packet.route.v6)
    packet.words = {load<std::uint16_t>(ip.data() + 4), load<std::uint16_t>(ip.data() + 6)};
  const auto udp = ip.subspan(ip_bytes);
  packet.route.source_port = load<std::uint16_t>(udp.data());
  packet.route.destination_port = load<std::uint16_t>(udp.data() + 2);
  if (packet.route.destination_port != kUdpPort) return std::nullopt;
  const auto datagram = udp.subspan(kUdpBytes, load<std::uint16_t>(udp.data() + 4) - kUdpBytes);
  packet.datagram.assign(datagram.begin(), datagram.end());
  return packet;
}

}  // namespace

std::vector<Captured> packets_of(const std::string& name) {
  const std::string path = std::string(WEFT_CAPTURES) + "/" + name;
  char error[PCAP_ERRBUF_SIZE] = "";
  const std::unique_ptr<pcap_t, decltype(&pcap_close)> file(pcap_open_offline(path.c_str(), error),
                                                            &pcap_close);
  EXPECT_TRUE(file != nullptr) << error;
  std::vector<Captured> packets;
  if (file == nullptr) return packets;
  EXPECT_EQ(pcap_datalink(file.get()), DLT_EN10MB);
  pcap_pkthdr* header = nullptr;
  const u_char* bytes = nullptr;
  while (pcap_next_ex(file.get(), &header, &bytes) == 1) {
    const auto packet = unwrap({reinterpret_cast<const std::byte*>(bytes), header->caplen});
    if (packet) packets.push_back(*packet);
  }
  return packets;
}

}  // namespace weft::wire::testing
