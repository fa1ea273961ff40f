// SPDX-License-Identifier: BSD-2-Clause
// What stands before the bytes of a message?
//
// The first bytes of each SEND between Weft's endpoints, numbers in network order:
//    0  kind
//    1  operation (link::MessageOperation)
//    2  flags: 1 has data, 2 wants an acknowledgement, 4 failed
//    3  zero; of an atomic operation: form, operation and type stand in 24 to 26
//    4  rendezvous id: number by which an answer names the message, 4 bytes
//    8  tag, 8 bytes
//   16  data, 8 bytes; of an answer: the flow of what it answers (FlowInitiator::identity)
//   24  length of the message, 8 bytes
#pragma once

#include <cstdint>
#include <span>
#include <unordered_map>

#include "link/flow.h"

namespace weft::rdm {

inline constexpr std::size_t kMessageHeader = 32;

enum class MessageKind : std::uint8_t {
  kEager = 1,   // all bytes of a message follow
  kRts = 2,     // they wait until the peer wants them, see kCts
  kTaken = 3,   // answer: the message of that rendezvous id was received, or discarded
  kAtomic = 4,  // an atomic operation: ranges and operands follow
  kResult = 5,  // answer: how it ended (tag: errno, length: refusal), and what was there
  kAlias = 6,   // from now on the key alias_key(rendezvous_id) stands for the key in `tag`
  // What the write with an immediate value that follows announces: its data, and the length.
  kWriteImmInfo = 7,
  // An access to several ranges (tag: how many) follows, or a long one, which goes in parts; data:
  // 1 when it writes. The ranges follow the header. If one is refused all are, until kRangeEnd.
  kRangeBegin = 8,
  kRangeEnd = 9,
  kCoalesced =
      10,  // small messages, each a header of kind kEager and its bytes, follow one another
  // Answer to an offer: its first `length` bytes shall be written to a receive, by the key
  // receive_key(tag), at addresses from 0 on and in their order.
  kCts = 11,
  kWithdrawn =
      12,  // the message of that rendezvous id, which was offered, is not to be had any more
};

struct MessageHeader {
  MessageKind kind = MessageKind::kEager;
  link::MessageOperation operation = link::MessageOperation::kMessage;
  bool has_data = false;
  bool wants_ack = false;
  AtomicAction action;  // with kAtomic
  std::uint32_t rendezvous_id = 0;
  std::uint64_t tag = 0;
  std::uint64_t data = 0;
  std::uint64_t length = 0;
};

// The rendezvous ids are easy to guess, and every REP tells the id of an endpoint. An
// answer (kTaken, kResult, kCts) therefore also names the flow that carried what it answers, by the
// transaction id of its first REQ, 64 random bits: a third party that does not see packets of the
// flow does not know it. An address proves less: that of a packet can be forged, and a peer at a
// wildcard address may answer from another one than it was sent to.

// Of a message that goes whole, or else is offered; without a rendezvous id.
MessageHeader header_of(const link::SendRequest& request, bool whole);
void write_header(const MessageHeader& header, std::byte* out);
// Of at least kMessageHeader bytes; its values may be any.
MessageHeader read_header(const std::byte* bytes);

// A range of memory of the peer: address, length and key, 8 bytes each.
inline constexpr std::size_t kRange = 24;
// Writes them one after the other; returns how many bytes that were.
std::size_t write_ranges(std::span<const RemoteRange> ranges, std::byte* out);
RemoteRange read_range(const std::byte* bytes);

// Whether an access is announced by kRangeBegin: it has several ranges, or is so long that it may
// go in parts; a read does on a path with small packets.
bool is_announced(bool write, std::span<const RemoteRange> ranges);
// The header before the ranges of an access that is announced.
MessageHeader announcement_of(bool write, std::span<const RemoteRange> ranges);

// Keys on the wire have 32 bits. Those of regions that have no more than 31 go as they are; for
// others an alias is agreed upon; and a receive has one while it waits for a message to be written.
inline constexpr std::uint32_t kAliasBit = 0x8000'0000;
inline constexpr std::uint32_t kReceiveBits = 0xC000'0000;
inline constexpr std::uint32_t kNumberBits = 0x3FFF'FFFF;
constexpr std::uint32_t receive_key(std::uint32_t rendezvous_id) {
  return kReceiveBits | (rendezvous_id & kNumberBits);
}
constexpr bool is_receive(std::uint32_t key) { return (key & kReceiveBits) == kReceiveBits; }
constexpr std::uint32_t alias_key(std::uint32_t number) {
  return kAliasBit | (number & kNumberBits);
}
constexpr bool is_alias(std::uint32_t key) { return (key & kReceiveBits) == kAliasBit; }

// The aliases that one sender has told one receiver of. Another one for the same number would mean
// other memory for a read that comes again: numbers are not used twice.
class Aliases {
 public:
  // The key as it goes over the wire. tell(const MessageHeader&) is called where the receiver has
  // to hear of an alias before.
  template <class Announce>
  std::uint32_t wire_key(RegionKey key, Announce&& announce) {
    if (key.v < kAliasBit) return static_cast<std::uint32_t>(key.v);
    const auto [place, fresh] =
        numbers_.try_emplace(key.v, static_cast<std::uint32_t>(numbers_.size()));
    if (fresh) {
      MessageHeader header;
      header.kind = MessageKind::kAlias;
      header.rendezvous_id = place->second;
      header.tag = key.v;
      announce(header);
    }
    return alias_key(place->second);
  }

 private:
  std::unordered_map<std::uint64_t, std::uint32_t> numbers_;
};

}  // namespace weft::rdm
