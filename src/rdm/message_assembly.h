// SPDX-License-Identifier: BSD-2-Clause
// Where are the bytes of a message of which packets are still missing?
#pragma once

#include <array>
#include <memory>
#include <span>
#include <vector>

#include "base/budget.h"
#include "link/inbox.h"
#include "rdm/message.h"
#include "rdm/options.h"
#include "wire/packet.h"
#include "work/target.h"

namespace weft::rdm {

// Whole messages are no longer than that, whatever a peer's limit is.
inline constexpr std::size_t kLongestMessage = 2 * kEagerLimit;
// Messages of so many bytes, header included, are taken whatever others hold, of which each flow is
// in the middle of one at most: those of other kinds than kEager, and kEager ones whose sends are
// reported before they arrive.
inline constexpr std::size_t kGuaranteedMessage = wire::kMaxReliableDatagramMtu;
static_assert(kMessageHeader + kCopiedSend <= kGuaranteedMessage);

// A message whose packets are copied to its receive as they arrive.
struct PlacedMessage {
  // Copies what the receive has room for.
  void put(std::span<const std::byte> bytes);

  void* cookie = nullptr;  // of the receive
  std::array<LocalRange, link::kMaxLinkSges> sges{};
  std::size_t count = 0;
  std::uint64_t wanted = 0;         // bytes of it
  std::uint64_t length = 0;         // of the whole message
  std::uint64_t there = 0;          // that have arrived
  std::uint32_t rendezvous_id = 0;  // named in the acknowledgement; 0: none is wanted
  int error = 0;                    // EFAULT: a buffer is not mapped
};

// The message that arrives over a flow: at its receive, or kept here until its end. One thread at a
// time.
class MessageAssembly {
 public:
  // Messages of several packets are charged to `messages`, which outlives this.
  explicit MessageAssembly(Budget::Share& messages) : messages_(messages) {}

  // Between these calls the payload of the packet lies at `payload`. Full packets have `path_mtu`
  // bytes.
  void begin_packet(const std::byte* payload, std::size_t path_mtu) {
    arrived_at_ = payload;
    path_mtu_ = path_mtu;
  }
  void end_packet() {
    if (!packet_.empty()) keep_packet();
  }

  // Memory is held for a message of several packets.
  bool reserves() const { return reserved_ != 0; }
  // Nothing of a message is kept.
  bool is_empty() const { return message_.empty() && packet_.empty(); }
  // Keeps further bytes of a message. kInvalid beyond its announced length, kNotReady without
  // memory for all of it if it is larger than kGuaranteedMessage.
  work::RequestVerdict add(std::span<const std::byte> bytes);
  // The message, all packets of which have arrived: until clear().
  std::span<const std::byte> message();
  void clear();

  // From now on the message goes to that receive: its first `length` bytes.
  void place(std::span<const LocalRange> sges, std::uint64_t length, void* cookie);
  // Null unless it goes to a receive.
  PlacedMessage* placed() const { return placed_.get(); }
  std::unique_ptr<PlacedMessage> take_placed() { return std::move(placed_); }

 private:
  work::RequestVerdict begin(std::span<const std::byte> first);
  void keep_packet();

  Budget::Share& messages_;
  std::unique_ptr<PlacedMessage> placed_;
  std::vector<std::byte> message_;  // bytes of the packets before the current one
  std::size_t promised_ = 0;        // bytes that the message may have, header included
  std::size_t reserved_ = 0;        // bytes of messages_ for those
  const std::byte* arrived_at_ = nullptr;
  std::size_t path_mtu_ = 0;
  std::span<const std::byte> packet_;  // the current one, which lies where it arrived
};

}  // namespace weft::rdm
