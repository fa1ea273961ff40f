// SPDX-License-Identifier: BSD-2-Clause
// Do malformed packets harm the code that parses them? Input: a datagram as received.
#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdlib>
#include <span>
#include <vector>

#include "wire/cm_message.h"
#include "wire/icrc.h"
#include "wire/packet.h"

namespace {

using namespace weft::wire;

void require(bool condition) {
  if (!condition) std::abort();
}

// What was read is written as it stood, but for bits that have no meaning.
void write_again(std::span<const std::byte> datagram, const Packet& packet) {
  std::vector<std::byte> out(header_bytes(packet));
  write_headers(packet, packet.payload.size(), out.data());
  constexpr std::size_t kReserved[] = {4, 8};
  for (std::size_t i = 0; i < kBthBytes; ++i) {
    const bool reserved = i == kReserved[0] || i == kReserved[1];
    require(reserved || out[i] == datagram[i]);
  }
  const std::size_t whole =
      out.size() + packet.payload.size() + padding_of(packet.payload.size()) + kIcrcBytes;
  require(whole == datagram.size());
  Packet again;
  out.insert(out.end(), packet.payload.begin(), packet.payload.end());
  out.resize(whole);
  require(parse(out, again) == Malformed::kNone);
  require(again.psn == packet.psn && again.payload.size() == packet.payload.size());
}

// A message of a connection manager, whole or behind packet headers.
void manage(std::span<const std::byte> bytes) {
  const auto mad = parse_cm(bytes);
  if (!mad) return;
  const auto once = write_cm(*mad);
  const auto again = parse_cm(once);
  require(again.has_value() && write_cm(*again) == once);
  (void)parse_ip_header(bytes.first<CmIpHeader::kBytes>());
}

void check(std::span<const std::byte> datagram) {
  for (const bool v6 : {false, true}) {
    Route route;
    route.v6 = v6;
    route.source_port = 50000;
    route.destination_port = kUdpPort;
    const auto words = check_icrc(route, datagram);
    require(!words || words->fragment == 0x4000 || words->fragment == 0);
  }
}

constexpr std::size_t kLongestDatagram = 65'507;  // of UDP

void read_all(std::span<const std::byte> datagram) {
  Packet packet;
  if (parse(datagram, packet) == Malformed::kNone) write_again(datagram, packet);
  manage(packet.payload);
  manage(datagram);
  check(datagram);
}

}  // namespace

// The bytes as they are; then followed by as many zeros as their last two bytes say.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size > kLongestDatagram) return 0;
  const std::span<const std::byte> datagram(reinterpret_cast<const std::byte*>(data), size);
  read_all(datagram);
  if (size < 2) return 0;
  const std::size_t more = std::size_t{data[size - 2]} << 8 | data[size - 1];
  std::vector<std::byte> longer(datagram.begin(), datagram.end());
  longer.resize(std::min(size + more, kLongestDatagram));
  read_all(longer);
  return 0;
}
