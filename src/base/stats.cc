// SPDX-License-Identifier: BSD-2-Clause
// Which events does a port count, and under which names?
#include "base/stats.h"

namespace weft {
namespace {

struct NamedStat {
  Stat stat;
  const char* name;
};

constexpr std::array<NamedStat, kStats> kRows{{
    {Stat::kConnectionMessages, "rx_connection_messages"},
    {Stat::kRequests, "rx_requests"},
    {Stat::kResponses, "rx_responses"},
    {Stat::kCnpsHandled, "rp_cnp_handled"},
    {Stat::kEcnMarked, "np_ecn_marked_roce_packets"},
    {Stat::kMalformedPackets, "malformed_packets"},
    {Stat::kIcrcErrors, "icrc_errors"},
    {Stat::kPkeyViolations, "pkey_violations"},
    {Stat::kUnknownQp, "unknown_qp"},
    {Stat::kQkeyViolations, "qkey_violations"},
    {Stat::kUnknownFlow, "unknown_flow"},
    {Stat::kWrongPeer, "wrong_peer"},
    {Stat::kForgedRelayHeaders, "forged_relay_headers"},
    {Stat::kRelayedFromWeft, "relayed_from_weft"},
    {Stat::kDuplicateRequests, "duplicate_request"},
    {Stat::kOutOfSequence, "out_of_sequence"},
    {Stat::kRefusedRequests, "refused_requests"},
    {Stat::kUnexpectedResponses, "unexpected_responses"},
    {Stat::kInvalidMessages, "invalid_messages"},
    {Stat::kOutOfOrderKept, "out_of_order_kept"},
    {Stat::kPacketsSent, "tx_packets"},
    {Stat::kRetransmissions, "tx_retransmissions"},
    {Stat::kAckTimeouts, "local_ack_timeout_err"},
    {Stat::kSocketOverflows, "socket_overflows"},
    {Stat::kDatagramsNoPeer, "datagrams_no_peer"},
    {Stat::kDatagramsNoRoom, "datagrams_no_room"},
    {Stat::kDatagramsUnwanted, "datagrams_unwanted"},
    {Stat::kDatagramsNoMemory, "datagrams_no_memory"},
    {Stat::kRelayDelivered, "relay_delivered"},
    {Stat::kRelayForwarded, "relay_forwarded"},
    {Stat::kRelayMalformed, "relay_malformed"},
    {Stat::kRelayIcrcErrors, "relay_icrc_errors"},
    {Stat::kRelayUnknownQp, "relay_unknown_qp"},
    {Stat::kRelayUnreachable, "relay_unreachable"},
    {Stat::kRelaySendErrors, "relay_send_errors"},
    {Stat::kRelayOverflows, "relay_overflows"},
    {Stat::kRelayRefusals, "relay_refusals"},
    {Stat::kAnswersLimited, "cm_answers_limited"},
    {Stat::kRequestsDisplaced, "cm_requests_displaced"},
    {Stat::kRequestsHeldBack, "cm_requests_held_back"},
    {Stat::kSharedMessages, "shm_messages"},
    {Stat::kSharedOperations, "shm_operations"},
    {Stat::kRefusedUnknownKey, "refused_unknown_key"},
    {Stat::kRefusedBeforeStart, "refused_before_region"},
    {Stat::kRefusedPastEnd, "refused_past_region"},
    {Stat::kRefusedWraps, "refused_wrapped_range"},
    {Stat::kRefusedNoRight, "refused_region_right"},
    {Stat::kRefusedTooMany, "refused_too_many_ranges"},
    {Stat::kRefusedNotServed, "refused_endpoint_right"},
    {Stat::kRefusedSplitElement, "refused_split_element"},
    {Stat::kRefusedDisabled, "refused_disabled_region"},
    {Stat::kRefusedOtherBinding, "refused_other_endpoint"},
    {Stat::kRefusedNotRefreshed, "refused_not_refreshed"},
    {Stat::kRefusedOtherAuthorization, "refused_authorization"},
    {Stat::kRefusedNotMapped, "refused_unmapped_key"},
    {Stat::kRefusedLocalBuffer, "refused_local_buffer"},
}};

static_assert(
    [] {
      for (std::size_t i = 0; i < kStats; ++i) {
        if (kRows[i].stat != static_cast<Stat>(i)) return false;
      }
      return true;
    }(),
    "a row for each counter, in their order");

}  // namespace

std::string_view name_of(Stat stat) { return kRows[static_cast<std::size_t>(stat)].name; }

std::uint64_t Stats::sum(Stat first, Stat last) const {
  std::uint64_t sum = 0;
  for (auto i = static_cast<std::size_t>(first); i <= static_cast<std::size_t>(last); ++i) {
    sum += values_[i].load(std::memory_order_relaxed);
  }
  return sum;
}

Stats& Stats::discarded() {
  static constinit Stats stats;
  return stats;
}

std::string text_of(const Stats& stats) {
  std::string text;
  for (std::size_t i = 0; i < kStats; ++i) {
    const std::uint64_t value = stats.of(static_cast<Stat>(i));
    if (value == 0) continue;
    if (!text.empty()) text += ", ";
    text += std::string(kRows[i].name) + " " + std::to_string(value);
  }
  return text;
}

}  // namespace weft
