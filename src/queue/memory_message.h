// SPDX-License-Identifier: BSD-2-Clause
// What do queue pairs of one host say to each other in the cells of a mailbox?
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "base/types.h"
#include "work/target.h"
#include "work/work.h"

namespace weft::queue {

// Kinds of messages, or of parts of one. Parts of a message follow each other in their order.
inline constexpr std::uint8_t kFirstPart = 1;
inline constexpr std::uint8_t kLastPart = 2;
inline constexpr std::uint8_t kWithImmediate = 4;
inline constexpr std::uint8_t kSolicitedEvent = 8;
// No SEND: the initiator has carried out a WRITE with immediate data. The payload is its length.
inline constexpr std::uint8_t kAfterWrite = 16;
// No SEND either: an access of the initiator was refused. The payload is a RefusalNote.
inline constexpr std::uint8_t kAfterRefusal = 32;
// The service is unreliable: the message is executed or dropped, and never answered.
inline constexpr std::uint8_t kUnreliable = 64;
// Part of a SEND whose bytes lie in the sender's memory still. The payload is an InPlaceNote.
inline constexpr std::uint8_t kInPlace = 128;

// The two words of a cell beside its payload (shm::Cell::tag and data).
struct MessageHead {
  std::uint32_t to = 0;    // QPN, 24 bits
  std::uint32_t from = 0;  // the same
  std::uint32_t immediate = 0;
  std::uint8_t flags = 0;
  std::uint32_t shared = 0;  // the number of a shared receive queue (annex A14)
  // The lower bits of the first PSN: messages of a reliable connection that were left in a ring by
  // an earlier one have others, as their packets would have.
  std::uint16_t connection = 0;

  bool has(std::uint8_t flag) const { return (flags & flag) != 0; }
  std::uint64_t tag() const {
    const std::uint64_t high = connection >> 8;
    const std::uint64_t low = connection & 0xFF;
    return high << 56 | std::uint64_t{to & kQpn} << 32 | low << 24 | (from & kQpn);
  }
  std::uint64_t data() const {
    return std::uint64_t{immediate} << 32 | std::uint64_t{shared & 0xFF'FFFF} << 8 | flags;
  }
  static MessageHead unpack(std::uint64_t tag, std::uint64_t data) {
    return {static_cast<std::uint32_t>(tag >> 32 & kQpn),
            static_cast<std::uint32_t>(tag & kQpn),
            static_cast<std::uint32_t>(data >> 32),
            static_cast<std::uint8_t>(data),
            static_cast<std::uint32_t>(data >> 8 & 0xFF'FFFF),
            static_cast<std::uint16_t>(tag >> 56 << 8 | (tag >> 24 & 0xFF))};
  }
  static constexpr std::uint64_t kQpn = 0xFF'FFFF;
};

// The flags that a request gives to its message, and the end that they are at the target.
constexpr std::uint8_t flags_of(const work::Work& work) {
  return static_cast<std::uint8_t>((work.has_immediate ? kWithImmediate : 0) |
                                   (work.solicited ? kSolicitedEvent : 0));
}
inline work::MessageEnd end_of(const MessageHead& head) {
  return {head.has(kWithImmediate), false, head.has(kSolicitedEvent), head.immediate, 0};
}

// An access that was refused. The target looks for itself, and no more is believed than that the
// peer has ended the connection.
struct RefusalNote {
  std::uint64_t address = 0;
  std::uint32_t length = 0;
  std::uint32_t key = 0;
  Access need = Access::kNone;    // kNone: the request was invalid
  std::uint32_t operational = 0;  // 1: the memory has gone
};

// Buffers of the sender, in the order of their bytes, each with its lkey. The target reads them as
// an initiator of READs reads memory, but as the sender's protection domain allows local reads.
struct InPlaceNote {
  struct Buffer {
    std::uint64_t address = 0;
    std::uint32_t length = 0;
    std::uint32_t key = 0;
  };
  static constexpr std::size_t kMost = 6;
  std::uint64_t count = 0;
  std::array<Buffer, kMost> buffers;
};

// Precedes the bytes of a datagram.
struct DatagramNote {
  std::uint32_t queue_key = 0;
  std::uint32_t is_ipv6 = 0;
  std::array<std::byte, 16> from{};  // IPv4: the first 4 bytes
  std::array<std::byte, 16> to{};
};

// Why a message was not executed (shm::answer_word()): a kind, and 8 bits of detail.
enum class AnswerKind : std::uint8_t {
  kNone = 0,
  kNotReady = 1,      // no receive is posted; the detail is a code of IBTA table 45
  kNotThere = 2,      // no queue pair is connected to the sender's, or none receives
  kInvalid = 3,       // it is longer than the receive, or no proper request
  kAccess = 4,        // refused; the detail says why
  kOperational = 5,   // the memory of the receive has gone
  kByPackets = 6,     // its queue pair takes packets only
  kSenderMemory = 7,  // a buffer of the sender may not be read; the detail says why
};
constexpr std::uint16_t answer_of(AnswerKind kind, std::uint8_t detail = 0) {
  return static_cast<std::uint16_t>(static_cast<unsigned>(kind) << 8 | detail);
}
constexpr AnswerKind kind_of(std::uint64_t answer) {
  return static_cast<AnswerKind>(answer >> 8 & 0xFF);
}
constexpr std::uint8_t detail_of(std::uint64_t answer) { return static_cast<std::uint8_t>(answer); }

constexpr std::uint16_t answer_of(const work::RequestVerdict& verdict, std::uint8_t rnr_timer) {
  switch (verdict.kind) {
    case work::RequestVerdict::Kind::kYes:
      return 0;
    case work::RequestVerdict::Kind::kNotReady:
      return answer_of(AnswerKind::kNotReady, rnr_timer);
    case work::RequestVerdict::Kind::kAccess:
      return answer_of(AnswerKind::kAccess, verdict.detail);
    case work::RequestVerdict::Kind::kOperational:
      return answer_of(AnswerKind::kOperational);
    case work::RequestVerdict::Kind::kInvalid:
    case work::RequestVerdict::Kind::kGivenUp:
      break;
  }
  return answer_of(AnswerKind::kInvalid, verdict.detail);
}

}  // namespace weft::queue
