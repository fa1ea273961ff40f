// SPDX-License-Identifier: BSD-2-Clause
// How are packets written down so that Wireshark reads them? (pcapng, draft-ietf-opsawg-pcapng)
#include "wire/pcapng.h"

#include <cstring>

#include "ip_headers.h"

namespace weft::wire {
namespace {

using PacketBytes = std::vector<std::byte>;

constexpr std::uint32_t kSectionBlock = 0x0A0D'0D0A;
constexpr std::uint32_t kInterfaceBlock = 1;
constexpr std::uint32_t kPacketBlock = 6;
constexpr std::uint32_t kByteOrder = 0x1A2B'3C4D;
constexpr std::uint16_t kRawIp = 101;  // LINKTYPE_RAW
constexpr std::uint16_t kEndOfOptions = 0;
constexpr std::uint16_t kComment = 1;
constexpr std::uint16_t kProgram = 4;     // of a section
constexpr std::uint16_t kName = 2;        // of an interface
constexpr std::uint16_t kResolution = 9;  // of an interface
constexpr std::uint16_t kFlags = 2;       // of a packet
constexpr std::uint8_t kNanoseconds = 9;  // powers of a tenth

// A block under construction: numbers in this machine's order, which the section header tells.
class Block {
 public:
  explicit Block(std::uint32_t kind) {
    number<std::uint32_t>(kind);
    number<std::uint32_t>(0);  // the length, known in the end
  }
  template <class T>
  void number(T value) {
    const auto* raw = reinterpret_cast<const std::byte*>(&value);
    bytes_.insert(bytes_.end(), raw, raw + sizeof value);
  }
  void raw(std::span<const std::byte> bytes) {
    bytes_.insert(bytes_.end(), bytes.begin(), bytes.end());
  }
  void padded(std::span<const std::byte> bytes) {
    raw(bytes);
    bytes_.resize((bytes_.size() + 3) & ~std::size_t{3});
  }
  void option(std::uint16_t kind, std::span<const std::byte> value) {
    number(kind);
    number(static_cast<std::uint16_t>(value.size()));
    padded(value);
  }
  void option(std::uint16_t kind, std::string_view text) {
    constexpr std::size_t kLongest = 60'000;  // of 64 KiB
    if (!text.empty()) option(kind, std::as_bytes(std::span(text.substr(0, kLongest))));
  }
  PacketBytes finish() {
    number(kEndOfOptions);
    number(std::uint16_t{0});
    const auto length = static_cast<std::uint32_t>(bytes_.size() + sizeof(std::uint32_t));
    number(length);
    std::memcpy(bytes_.data() + sizeof(std::uint32_t), &length, sizeof length);
    return std::move(bytes_);
  }

 private:
  PacketBytes bytes_;
};

PacketBytes ip_and_udp(const Route& route, Ipv4Words words, std::span<const std::byte> datagram) {
  PacketBytes headers(ip_bytes_of(route) + kUdpBytes);
  std::byte* ip = headers.data();
  write_ip_and_udp(route, words, datagram.size(), ip);
  if (!route.v6) add_ipv4_checksum(ip);
  add_udp_checksum(route, ip + ip_bytes_of(route), datagram);
  return headers;
}

}  // namespace

std::vector<std::byte> capture_header(std::string_view program, std::string_view remark) {
  Block block(kSectionBlock);
  block.number(kByteOrder);
  block.number(std::uint16_t{1});  // version 1.0
  block.number(std::uint16_t{0});
  block.number(~std::uint64_t{0});  // as long as the file
  block.option(kComment, remark);
  block.option(kProgram, program);
  return block.finish();
}

std::vector<std::byte> capture_interface(std::string_view name) {
  Block block(kInterfaceBlock);
  block.number(kRawIp);
  block.number(std::uint16_t{0});
  block.number(std::uint32_t{0});  // packets are whole
  block.option(kName, name);
  const std::byte resolution{kNanoseconds};
  block.option(kResolution, std::span(&resolution, 1));
  return block.finish();
}

std::vector<std::byte> capture_packet(std::uint32_t interface, std::uint64_t nanoseconds,
                                      CaptureDirection direction, const Route& route,
                                      Ipv4Words words, std::span<const std::byte> datagram,
                                      std::string_view remark) {
  const PacketBytes headers = ip_and_udp(route, words, datagram);
  const auto length = static_cast<std::uint32_t>(headers.size() + datagram.size());
  Block block(kPacketBlock);
  block.number(interface);
  block.number(static_cast<std::uint32_t>(nanoseconds >> 32));
  block.number(static_cast<std::uint32_t>(nanoseconds));
  block.number(length);
  block.number(length);
  block.raw(headers);
  block.padded(datagram);
  block.option(kComment, remark);
  const auto flags = static_cast<std::uint32_t>(direction);
  block.option(kFlags, std::as_bytes(std::span(&flags, 1)));
  return block.finish();
}

}  // namespace weft::wire
