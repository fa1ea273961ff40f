// SPDX-License-Identifier: BSD-2-Clause
// Which requests arrived before some that are missing, and which missing ones is the peer to be
// told of?
#include "transport/early_packets.h"

#include <algorithm>
#include <utility>

namespace weft::transport {

EarlyPackets::Fate EarlyPackets::take(const wire::Packet& request, PsnRange range, Psn expected,
                                      Time now) {
  const bool too_far =
      request.psn.since(expected) >= static_cast<std::int32_t>(kMaxHeld) || range.count > kMaxHeld;
  const bool again = kept_.contains(request.psn);
  if (too_far || !(again || keep(request))) return Fate::kNoRoom;
  if (highest_.before(request.psn)) {
    const PsnRange hole{highest_, static_cast<std::uint32_t>(request.psn.since(highest_))};
    if (holes_.empty()) asked_at_ = now;
    holes_.add(hole);
    asked_.push_back(hole);
  }
  if (highest_.before(range.end())) highest_ = range.end();
  arrived(request.psn, now);
  holes_.remove(range);
  if (request.ack_request) report_owed_ = true;
  ask(now);
  return again ? Fate::kDuplicate : Fate::kKept;
}

bool EarlyPackets::keep(const wire::Packet& request) {
  if (share_ != nullptr && !share_->take(kCost + request.payload.size())) return false;
  EarlyPacket& kept = kept_[request.psn];
  kept.packet = request;
  kept.payload.assign(request.payload.begin(), request.payload.end());
  return true;
}

void EarlyPackets::give_back(std::size_t payload) {
  if (share_ != nullptr) share_->give(kCost + payload);
}

void EarlyPackets::forget(Psn expected) {
  for (const auto& [psn, kept] : kept_) give_back(kept.payload.size());
  holes_.clear();
  asked_.clear();
  kept_.clear();
  report_owed_ = false;
  highest_ = expected;
}

// A packet that was asked for has arrived.
void EarlyPackets::filled(Time now) {
  constexpr Duration kLeast = std::chrono::microseconds(20);
  constexpr Duration kMost = std::chrono::milliseconds(50);
  fill_time_ = std::clamp(fill_time_ + (now - asked_at_ - fill_time_) / 8, kLeast, kMost);
}

void EarlyPackets::ask_for_all(Time now) {
  asked_at_ = now;
  asked_.assign(holes_.begin(), holes_.end());
}

std::optional<EarlyPackets::EarlyPacket> EarlyPackets::take_out(Psn expected) {
  if (kept_.empty() || expected.before(kept_.begin()->first)) return std::nullopt;
  auto kept = std::move(kept_.extract(kept_.begin()).mapped());
  give_back(kept.payload.size());
  return kept;
}

// A missing packet may have arrived before the peer was told of it.
bool EarlyPackets::reports() const {
  const auto is_missing = [this](const PsnRange& range) {
    return holes_.first_in(range).count != 0;
  };
  return !holes_.empty() && (report_owed_ || std::any_of(asked_.begin(), asked_.end(), is_missing));
}

std::optional<PsnRange> EarlyPackets::next_report() {
  while (!asked_.empty()) {
    const PsnRange range = holes_.first_in(asked_.front());
    if (range.count == 0) {
      asked_.erase(asked_.begin());
      continue;
    }
    asked_.front().count -= static_cast<std::uint32_t>(range.end().since(asked_.front().first));
    asked_.front().first = range.end();
    return range;
  }
  if (!std::exchange(report_owed_, false) || holes_.empty()) return std::nullopt;
  return PsnRange{highest_.after(-1), 0};
}

}  // namespace weft::transport
