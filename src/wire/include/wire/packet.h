// SPDX-License-Identifier: BSD-2-Clause
// What does a RoCEv2 packet say, and how is one written? (IBTA 9.2 to 9.6, annexes A14, A17, A19)
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/psn.h"
#include "wire/opcode.h"

namespace weft::wire {

inline constexpr std::uint16_t kUdpPort = 4791;
inline constexpr std::size_t kBthBytes = 12;
inline constexpr std::size_t kIcrcBytes = 4;
inline constexpr std::size_t kMaxPathMtu = 4096;
// Of reliable datagrams, which only Weft's endpoints send each other: any multiple of the first up
// to the second. The first is a line of the processor's caches, so that what a program watches in
// its memory appears there as a whole.
inline constexpr std::size_t kReliableDatagramMtuUnit = 64;
inline constexpr std::size_t kMaxReliableDatagramMtu = 139 * kReliableDatagramMtuUnit;
// The base header and the longest list of headers that any opcode has.
inline constexpr std::size_t kMaxHeaderBytes = kBthBytes + 40;
// The same of those that have a payload: of a write with an immediate value.
inline constexpr std::size_t kMaxHeaderBytesOfPayload = kBthBytes + 32;
// The longest datagram that parse() takes, from base header to ICRC: of a buffer for any packet.
inline constexpr std::size_t kMaxPacketBytes =
    kMaxHeaderBytesOfPayload + kMaxReliableDatagramMtu + kIcrcBytes;
inline constexpr std::uint16_t kDefaultPkey = 0xFFFF;
inline constexpr std::uint32_t kMulticastQpn = 0xFF'FFFF;

// May a packet with one partition key reach a queue pair with the other one? The upper bit tells a
// full member, and of two limited ones neither hears the other (IBTA 10.9.3).
constexpr bool pkeys_match(std::uint16_t one, std::uint16_t other) {
  constexpr std::uint16_t kFull = 0x8000;
  const auto partition = static_cast<std::uint16_t>(one & ~kFull);
  return partition != 0 && partition == (other & ~kFull) && ((one | other) & kFull) != 0;
}

// RDMA extended transport header: the memory of the responder that a request means.
struct Reth {
  std::uint64_t address = 0;
  std::uint32_t key = 0;
  std::uint32_t length = 0;
};

// Atomic extended transport header. What is added by a FetchAdd stands in `swap_or_add`.
struct AtomicEth {
  std::uint64_t address = 0;
  std::uint32_t key = 0;
  std::uint64_t swap_or_add = 0;
  std::uint64_t compare = 0;
};

// Everything that a packet says. Which members count depends on layout_of(opcode).headers; others
// are zero after parse() and not looked at by write_headers().
struct Packet {
  std::uint8_t opcode = 0;
  bool solicited = false;
  bool migrated = true;  // the usual state of a path
  bool fecn = false;
  bool becn = false;
  bool ack_request = false;
  std::uint16_t pkey = kDefaultPkey;
  std::uint32_t destination = 0;  // queue pair, 24 bits
  Psn psn;

  std::uint32_t end_to_end_context = 0;  // RDETH, 24 bits
  std::uint32_t queue_key = 0;           // DETH
  std::uint32_t source = 0;              // DETH: queue pair, 24 bits
  std::uint32_t shared_receive = 0;      // XRCETH, 24 bits
  std::uint32_t flush = 0;               // FETH: selectivity and placement
  Reth reth;
  AtomicEth atomic;
  std::uint32_t immediate = 0;       // ImmDt, as in host order
  std::uint32_t invalidate = 0;      // IETH
  std::uint8_t syndrome = 0;         // AETH
  std::uint32_t message_number = 0;  // AETH: MSN, 24 bits
  std::uint64_t original = 0;        // AtomicAckETH

  // Without padding. Of parse(): within the datagram.
  std::span<const std::byte> payload;
};

// Why a datagram is no packet.
enum class Malformed {
  kNone,
  kTooShort,       // for its headers, the padding or the ICRC
  kVersion,        // of the transport header: not 0
  kUnknownOpcode,  // that nothing is known about
  kPadding,        // of a packet that may have none, or whose bytes are not zero
  kPayload,        // of a length that no packet of that opcode has, whatever the path MTU
};

// Takes a UDP payload apart, whose last four bytes are the ICRC, which is not looked at. On failure
// `packet` holds what was read until then.
Malformed parse(std::span<const std::byte> datagram, Packet& packet);

// The most bytes that a packet of that transport carries behind its headers, without padding.
constexpr std::size_t max_payload(Transport transport, Payload payload) {
  switch (payload) {
    case Payload::kNone:
      return 0;
    case Payload::kFull:
    case Payload::kSome:
    case Payload::kAny:
      return transport == Transport::kReliableDatagram ? kMaxReliableDatagramMtu : kMaxPathMtu;
    case Payload::kEight:
      return 8;
    case Payload::kCnp:
      return 16;
  }
  return 0;
}

// Bytes of the headers of `packet`.
inline std::size_t header_bytes(const Packet& packet) {
  return kBthBytes + layout_of(packet.opcode).header_bytes;
}

// Zero bytes that follow a payload of that length.
constexpr std::size_t padding_of(std::size_t payload) { return (0 - payload) & 3; }

// Writes the headers of a packet whose payload, of `payload` bytes, the caller writes behind them,
// then the padding and the ICRC. `packet.payload` is not looked at; `out` has header_bytes().
// Numbers of 24 bits lose what is above them.
void write_headers(const Packet& packet, std::size_t payload, std::byte* out);

}  // namespace weft::wire
