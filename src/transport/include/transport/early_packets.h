// SPDX-License-Identifier: BSD-2-Clause
// Which requests arrived before some that are missing, and which missing ones is the peer to be
// told of?
#pragma once

#include <map>
#include <optional>
#include <vector>

#include "base/budget.h"
#include "transport/psn_ranges.h"
#include "transport/settings.h"
#include "wire/packet.h"

namespace weft::transport {

// Early packets of a peer that is Weft (Settings::selective): at most kMaxHeld, as far as the share
// has room. Only the copies of kept packets hold memory. `expected` is always the number of the
// request that is executed next; kept packets and holes lie behind it. One thread at a time.
class EarlyPackets {
 public:
  // A kept request.
  struct EarlyPacket {
    wire::Packet packet;  // without its payload
    std::vector<std::byte> payload;
  };
  enum class Fate : std::uint8_t { kNoRoom, kKept, kDuplicate };

  // `share`, if not null, is charged for kept packets, and outlives this.
  EarlyPackets(Psn first, Budget::Share* share) : highest_(first), share_(share) {}
  ~EarlyPackets() { forget(highest_); }
  EarlyPackets(const EarlyPackets&) = delete;
  EarlyPackets& operator=(const EarlyPackets&) = delete;

  bool empty() const { return kept_.empty(); }
  // A request arrives that uses these numbers, behind `expected`. With kNoRoom it is lost, as a
  // network loses packets.
  Fate take(const wire::Packet& request, PsnRange range, Psn expected, Time now);
  // The expected request arrives.
  void arrived(Psn psn, Time now) {
    if (holes_.has(psn)) filled(now);
  }
  // All before `expected` were executed.
  void advance(Psn expected) {
    if (highest_.before(expected)) highest_ = expected;
    holes_.forget_before(expected);
  }
  // Removes the first kept packet, if it is not behind `expected`.
  std::optional<EarlyPacket> take_out(Psn expected);
  // Names the missing packets again that were not sent again within the usual time.
  void ask(Time now) {
    if (!holes_.empty() && now - asked_at_ >= 2 * fill_time_) ask_for_all(now);
  }
  // Forgets all; the next packet that arrives is `expected`.
  void forget(Psn expected);

  // True when the peer is to be told of missing packets, or that no others are.
  bool reports() const;
  // Missing packets that the peer is to be told of; of count 0 the last packet that arrived: no
  // others before it are missing. Nothing when there is nothing to tell.
  std::optional<PsnRange> next_report();

 private:
  // Beside the payload: the node of the map, two heap blocks, and the hole that it may leave before
  // it, which is noted twice.
  static constexpr std::size_t kCost = sizeof(EarlyPacket) + 192;
  struct Earlier {
    bool operator()(Psn a, Psn b) const { return a.before(b); }
  };

  bool keep(const wire::Packet& request);
  void give_back(std::size_t payload);
  void filled(Time now);
  void ask_for_all(Time now);

  Psn highest_;  // behind the last packet that arrived
  PsnRanges holes_;
  std::map<Psn, EarlyPacket, Earlier> kept_;
  Budget::Share* const share_;
  Time asked_at_{};
  Duration fill_time_ = std::chrono::milliseconds(1);  // from asking to getting, smoothed
  std::vector<PsnRange> asked_;                        // that the peer is to be told of
  bool report_owed_ = false;                           // of the last packet that arrived
};

}  // namespace weft::transport
