// SPDX-License-Identifier: BSD-2-Clause
// Which events does a port count, and under which names?
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace weft {

// One counter each. The order is that of the shared page (docs/formats/statistics.md): a new
// counter stands at the end of its group, and the version of the format grows.
enum class Stat : std::uint8_t {
  // Packets received, by kind, and those of them that were ECN-marked.
  kConnectionMessages,
  kRequests,
  kResponses,
  kCnpsHandled,
  kEcnMarked,
  // Packets dropped before a flow took them, by reason (Stats::dropped).
  kMalformedPackets,
  kIcrcErrors,
  kPkeyViolations,
  kUnknownQp,
  kQkeyViolations,
  kUnknownFlow,
  kWrongPeer,
  kForgedRelayHeaders,
  kRelayedFromWeft,
  // Packets taken by a flow without effect, by reason.
  kDuplicateRequests,
  kOutOfSequence,
  kRefusedRequests,
  kUnexpectedResponses,
  kInvalidMessages,
  // Reliable services: packets kept until the missing ones before them arrive.
  kOutOfOrderKept,
  // Packets sent, those of them that were sent before, and expired ACK timeouts.
  kPacketsSent,
  kRetransmissions,
  kAckTimeouts,
  // Packets that the kernel dropped because the buffer of a socket was full.
  kSocketOverflows,
  // Datagrams sent to an absent peer, or to one without room; received without a receive; not sent
  // for want of shared memory.
  kDatagramsNoPeer,
  kDatagramsNoRoom,
  kDatagramsUnwanted,
  kDatagramsNoMemory,
  // Packets at port 4791: given to the port that looked, forwarded to another one, and dropped.
  kRelayDelivered,
  kRelayForwarded,
  kRelayMalformed,
  kRelayIcrcErrors,
  kRelayUnknownQp,
  kRelayUnreachable,
  kRelaySendErrors,
  kRelayOverflows,
  // Answers to requests for absent processes.
  kRelayRefusals,
  // Connection management: answers that the limits forbade, half-open requests that gave way to
  // younger ones, requests that were not taken because many others have not been completed.
  kAnswersLimited,
  kRequestsDisplaced,
  kRequestsHeldBack,
  // Through shared memory: messages that queue pairs of this process received, and one-sided
  // operations that they carried out.
  kSharedMessages,
  kSharedOperations,
  // Own operations of libfabric's endpoints that were refused, by reason (device/refusals.h).
  kRefusedUnknownKey,
  kRefusedBeforeStart,
  kRefusedPastEnd,
  kRefusedWraps,
  kRefusedNoRight,
  kRefusedTooMany,
  kRefusedNotServed,
  kRefusedSplitElement,
  kRefusedDisabled,
  kRefusedOtherBinding,
  kRefusedNotRefreshed,
  kRefusedOtherAuthorization,
  kRefusedNotMapped,
  kRefusedLocalBuffer,
};
inline constexpr std::size_t kStats = static_cast<std::size_t>(Stat::kRefusedLocalBuffer) + 1;

// The name that the log and other processes show for a counter. Linux's RDMA drivers have the same
// for the same event (hw_counters).
std::string_view name_of(Stat stat);

// The counters of one port, or those of a process that belong to no port. They only grow. One
// thread at a time adds to a counter; any thread, and any process that maps them, reads.
class Stats {
 public:
  void add(Stat stat, std::uint64_t count = 1) {
    std::atomic<std::uint64_t>& value = values_[static_cast<std::size_t>(stat)];
    value.store(value.load(std::memory_order_relaxed) + count, std::memory_order_relaxed);
  }
  // By any number of threads at a time.
  void add_shared(Stat stat, std::uint64_t count = 1) {
    values_[static_cast<std::size_t>(stat)].fetch_add(count, std::memory_order_relaxed);
  }
  std::uint64_t of(Stat stat) const {
    return values_[static_cast<std::size_t>(stat)].load(std::memory_order_relaxed);
  }
  // The sum of a group, from its first to its last counter.
  std::uint64_t sum(Stat first, Stat last) const;
  // Packets dropped before a flow took them.
  std::uint64_t dropped() const { return sum(Stat::kMalformedPackets, Stat::kRelayedFromWeft); }
  // Own operations that were refused.
  std::uint64_t refused() const { return sum(Stat::kRefusedUnknownKey, Stat::kRefusedLocalBuffer); }

  // For objects whose events are not counted: its values mean nothing.
  static Stats& discarded();

 private:
  std::array<std::atomic<std::uint64_t>, kStats> values_{};
};
static_assert(sizeof(Stats) == kStats * 8, "other processes read it");

// "icrc_errors 3, duplicate_request 1": the counters that are not 0. Empty when all are.
std::string text_of(const Stats& stats);

}  // namespace weft
