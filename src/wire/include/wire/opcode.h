// SPDX-License-Identifier: BSD-2-Clause
// Which opcodes are there, and what does a packet of each consist of? (IBTA 9.2.1, tables 35 to 38)
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

namespace weft::wire {

// The upper three bits of an opcode.
enum class Transport : std::uint8_t {
  kReliableConnection = 0,
  kUnreliableConnection = 1,
  kReliableDatagram = 2,
  kUnreliableDatagram = 3,
  kCongestion = 4,  // congestion notification packets (annex A17)
  kExtendedReliable = 5,
};

// The lower five bits.
enum class Operation : std::uint8_t {
  kSendFirst = 0x00,
  kSendMiddle = 0x01,
  kSendLast = 0x02,
  kSendLastImmediate = 0x03,
  kSendOnly = 0x04,
  kSendOnlyImmediate = 0x05,
  kWriteFirst = 0x06,
  kWriteMiddle = 0x07,
  kWriteLast = 0x08,
  kWriteLastImmediate = 0x09,
  kWriteOnly = 0x0A,
  kWriteOnlyImmediate = 0x0B,
  kReadRequest = 0x0C,
  kReadResponseFirst = 0x0D,
  kReadResponseMiddle = 0x0E,
  kReadResponseLast = 0x0F,
  kReadResponseOnly = 0x10,
  kAcknowledge = 0x11,
  kAtomicAcknowledge = 0x12,
  kCompareSwap = 0x13,
  kFetchAdd = 0x14,
  kResync = 0x15,  // of reliable datagrams only
  kSendLastInvalidate = 0x16,
  kSendOnlyInvalidate = 0x17,
  kFlush = 0x1C,
  kAtomicWrite = 0x1D,
};

// The opcode of an operation on a transport; layout_of() says whether there is such a one.
constexpr std::uint8_t opcode_of(Transport transport, Operation operation) {
  return static_cast<std::uint8_t>(static_cast<unsigned>(transport) << 5 |
                                   static_cast<unsigned>(operation));
}

inline constexpr std::uint8_t kCongestionNotification = 0x81;

// The first part of an opcode.
constexpr Transport transport_of(std::uint8_t opcode) {
  return static_cast<Transport>(opcode >> 5);
}
// The second part, which may be a number that stands for none.
constexpr Operation operation_of(std::uint8_t opcode) {
  return static_cast<Operation>(opcode & 0x1F);
}

// The headers that may follow the base header, as bits of one mask, in the order in which they
// stand.
using Headers = std::uint16_t;
inline constexpr Headers kRdeth = 1 << 0;
inline constexpr Headers kDeth = 1 << 1;
inline constexpr Headers kXrceth = 1 << 2;
inline constexpr Headers kFeth = 1 << 3;
inline constexpr Headers kReth = 1 << 4;
inline constexpr Headers kAtomicEth = 1 << 5;
inline constexpr Headers kImmediate = 1 << 6;
inline constexpr Headers kIeth = 1 << 7;
inline constexpr Headers kAeth = 1 << 8;
inline constexpr Headers kAtomicAckEth = 1 << 9;

// Bytes of a mask of one header.
constexpr std::size_t bytes_of_one(Headers header) {
  constexpr std::uint8_t kBytes[] = {4, 8, 4, 4, 16, 28, 4, 4, 4, 8};
  return kBytes[std::countr_zero(header)];
}

// Bytes of all headers of a mask.
constexpr std::size_t bytes_of(Headers headers) {
  std::size_t sum = 0;
  for (Headers left = headers; left != 0; left = static_cast<Headers>(left & (left - 1))) {
    sum += bytes_of_one(left);
  }
  return sum;
}

// What a packet carries behind its headers.
enum class Payload : std::uint8_t {
  kNone,   // nothing
  kFull,   // the path MTU exactly: more packets of the message follow
  kSome,   // 1 byte to the path MTU: the last of several
  kAny,    // up to the path MTU: the only one
  kEight,  // an atomic write's 8 bytes
  kCnp     // 16 reserved bytes of a congestion notification
};

// What a packet of one opcode is.
struct Layout {
  bool known = false;
  Headers headers = 0;
  Payload payload = Payload::kNone;
  bool request = false;           // else a response, or neither
  bool starts = false;            // first or only packet of a message
  bool ends = false;              // last or only packet of a message
  std::uint8_t header_bytes = 0;  // of `headers` together
};

extern const std::array<Layout, 256> layouts;

// The layout of an opcode; `known` is false for one that no specification gives a meaning.
inline const Layout& layout_of(std::uint8_t opcode) { return layouts[opcode]; }

}  // namespace weft::wire
