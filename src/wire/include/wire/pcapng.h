// SPDX-License-Identifier: BSD-2-Clause
// How are packets written down so that Wireshark reads them? (pcapng, draft-ietf-opsawg-pcapng)
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "wire/icrc.h"

namespace weft::wire {

// What a capture file begins with: its own header, written by `program`. `remark`, if any, is shown
// with the file's properties.
std::vector<std::byte> capture_header(std::string_view program, std::string_view remark = {});

// Declares the next interface: the first one of a file is number 0. Its packets are IP packets
// without a link header, their times nanoseconds since 1970.
std::vector<std::byte> capture_interface(std::string_view name);

// In which direction a packet went.
enum class CaptureDirection : std::uint8_t { kReceived = 1, kSent = 2 };

// A packet on an interface: a UDP payload as it went over `route`, with the IP and UDP headers that
// it had, as far as they are known; checksums are right. `remark`, if any, is shown beside it.
std::vector<std::byte> capture_packet(std::uint32_t interface, std::uint64_t nanoseconds,
                                      CaptureDirection direction, const Route& route,
                                      Ipv4Words words, std::span<const std::byte> datagram,
                                      std::string_view remark = {});

}  // namespace weft::wire
