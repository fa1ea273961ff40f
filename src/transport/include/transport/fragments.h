// SPDX-License-Identifier: BSD-2-Clause
// What becomes of a packet that is larger than the path carries?
//
// Packets in flight keep their numbers and their sizes, by which both ends know what has come. When
// the way carries less than they were made for, they go in fragments, each as large as the way
// takes, and are put together before anybody looks at them: neither end's state knows of it. New
// work is made into smaller packets as soon as both ends have agreed on that.
//
// A fragment is a packet, too: an unreliable datagram to the end of the flow that the whole one is
// for, under that end's queue key. Its payload, big-endian:
//
//    0  which fragment this is, from 0 on
//    1  end-to-end context of the flow at the receiver
//    4  number of the packet that was cut: the sender counts them
//    8  fragments of it
//   10  bytes of it, without the ICRC
//   12  bytes of the packet: all fragments have as many, rounded up to four, the last one what is
//   left
//
// A lost fragment loses the packet: it goes again as a whole, with another number.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/budget.h"
#include "transport/settings.h"
#include "wire/packet.h"

namespace weft::transport {

// What fits a fragment, or goes whole, on a way for that path MTU: bytes from the base header to
// the padding.
constexpr bool goes_whole(std::size_t length, std::size_t path_mtu) {
  return length <= wire::kMaxHeaderBytesOfPayload + path_mtu;
}

// Cuts the packets of one end of a flow. One thread at a time.
class Fragmenter {
 public:
  // For packets of `settings.source`, which it numbers from behind `first` on. What was drawn at
  // random meets no fragment of a flow that is over.
  Fragmenter(const Settings& settings, std::uint32_t first);

  // Takes a packet, which is copied, for a way of that path MTU. The last one is forgotten.
  void cut(std::span<const std::byte> packet, std::size_t path_mtu);
  // Writes the next fragment of it, from its base header to its padding, into `out`, which has room
  // for wire::kMaxHeaderBytes and the path MTU. Returns its length, or 0 when there is none left.
  std::size_t next(std::span<std::byte> out);
  bool has_more() const { return index_ < count_; }
  // Gives back memory.
  void trim() { std::vector<std::byte>().swap(packet_); }

 private:
  wire::Packet header_;
  std::uint32_t context_;
  std::uint32_t number_;
  std::vector<std::byte> packet_;
  std::size_t count_ = 0;
  std::size_t index_ = 0;
};

// The context that a fragment's payload names; 0 for what is too short for a fragment.
std::uint32_t context_of_fragment(std::span<const std::byte> payload);

// Puts together the packets that one end of a flow gets in fragments, whatever their order: at most
// kAtOnce of them, as far as `share` has room; an older one that is not whole is given up. One
// thread at a time.
class Reassembler {
 public:
  static constexpr std::size_t kAtOnce = 64;

  // `share`, if not null, is charged for the memory that this takes, and outlives it.
  explicit Reassembler(Budget::Share* share = nullptr) : share_(share) {}
  ~Reassembler() { trim(); }
  Reassembler(const Reassembler&) = delete;
  Reassembler& operator=(const Reassembler&) = delete;

  // Takes in the payload of a fragment. Returns the packet when it has become whole, with room for
  // an ICRC behind it, as wire::parse() wants it; it stays until the next take(). Empty until then,
  // and where there is no room for it; nothing for what is no fragment.
  std::optional<std::span<const std::byte>> take(std::span<const std::byte> payload);
  // Gives back memory, and what is not whole.
  void trim();

 private:
  struct Packet {
    std::uint32_t number = 0;
    std::size_t count = 0;  // of fragments; 0: there is no such packet
    std::size_t length = 0;
    std::uint64_t missing = 0;  // fragments, a bit for each
    std::vector<std::byte> bytes;
  };

  bool grow(std::size_t bytes);

  Budget::Share* const share_;
  std::size_t taken_ = 0;        // bytes of it
  std::vector<Packet> packets_;  // by number, or none
};

}  // namespace weft::transport
