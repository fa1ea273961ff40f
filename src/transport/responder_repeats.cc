// SPDX-License-Identifier: BSD-2-Clause
// What is done with a request whose turn is not yet, or was before?
#include <algorithm>

#include "transport/responder.h"

namespace weft::transport {

using wire::Operation;

// Packets are missing before this one.
void Responder::take_early(const wire::Packet& request, Time now) {
  const bool reads = wire::operation_of(request.opcode) == Operation::kReadRequest;
  const PsnRange range{request.psn, reads ? packets_for(request.reth.length) : 1};
  const bool far =
      request.psn.since(expected_) >= static_cast<std::int32_t>(kMaxHeld) || range.count > kMaxHeld;
  const bool again = kept_.contains(request.psn);
  if (not_ready_ || far || !settings_.selective || !(again || keep(request))) {
    ++counts_.dropped;
    if (not_ready_ || settings_.selective || told_) return;
    told_ = true;
    nak_ = kSyndromeNak;
    return;
  }
  const bool new_hole = highest_.before(request.psn);
  if (new_hole) {
    const PsnRange hole{highest_, static_cast<std::uint32_t>(request.psn.since(highest_))};
    if (holes_.empty()) asked_at_ = now;
    holes_.add(hole);
    asked_.push_back(hole);
  }
  if (highest_.before(range.end())) highest_ = range.end();
  if (holes_.has(request.psn)) filled(now);
  holes_.remove(range);
  ++(again ? counts_.duplicates : counts_.kept);
  if (request.ack_request) report_owed_ = true;
  ask(now);
}

// False when there is no room: the packet is lost then, as a network loses packets.
bool Responder::keep(const wire::Packet& request) {
  if (share_ != nullptr && !share_->take(kKeptCost + request.payload.size())) return false;
  Kept& kept = kept_[request.psn];
  kept.packet = request;
  kept.payload.assign(request.payload.begin(), request.payload.end());
  return true;
}

void Responder::give_back(std::size_t payload) {
  if (share_ != nullptr) share_->give(kKeptCost + payload);
}

void Responder::forget_early() {
  for (const auto& [psn, kept] : kept_) give_back(kept.payload.size());
  holes_.clear();
  asked_.clear();
  kept_.clear();
  report_owed_ = false;
}

// Something that was asked for has come.
void Responder::filled(Time now) {
  constexpr Duration kLeast = std::chrono::microseconds(20);
  constexpr Duration kMost = std::chrono::milliseconds(50);
  fill_time_ = std::clamp(fill_time_ + (now - asked_at_ - fill_time_) / 8, kLeast, kMost);
}

// What was asked for and has not come within the time that it usually takes got lost once more.
void Responder::ask(Time now) {
  if (holes_.empty() || now - asked_at_ < 2 * fill_time_) return;
  asked_at_ = now;
  asked_.assign(holes_.begin(), holes_.end());
}

// The missing ones have come: what was kept behind them is next.
void Responder::take_kept(Time now) {
  while (!kept_.empty() && !refusing_ && !not_ready_) {
    const auto first = kept_.begin();
    if (expected_.before(first->first)) return;
    const auto kept = kept_.extract(first);
    wire::Packet packet = kept.mapped().packet;
    packet.payload = kept.mapped().payload;
    give_back(packet.payload.size());
    if (packet.psn == expected_) carry_out(packet, now);
    ack_owed_ = true;
  }
}

// It was carried out already; the answer may have been lost.
void Responder::take_again(const wire::Packet& request) {
  ++counts_.duplicates;
  const Operation operation = wire::operation_of(request.opcode);
  if (operation == Operation::kReadRequest) return read_again(request);
  if (operation == Operation::kCompareSwap || operation == Operation::kFetchAdd) {
    const auto found = std::find_if(
        remembered_.begin(), remembered_.end(),
        [&](const Value& value) { return !value.reads && value.range.first == request.psn; });
    if (found != remembered_.end()) answer_again(*found);
    return;
  }
  ack_owed_ = true;
}

// All of it or a part.
void Responder::read_again(const wire::Packet& request) {
  const PsnRange range{request.psn, packets_for(request.reth.length)};
  const auto found = std::find_if(remembered_.begin(), remembered_.end(), [&](const Value& value) {
    if (!value.reads || !value.range.has(range.first)) return false;
    const auto index = static_cast<std::uint64_t>(range.first.since(value.range.first));
    const std::uint64_t offset = index * settings_.path_mtu;
    return request.reth.key == value.memory.key &&
           request.reth.address == value.memory.address + offset &&
           request.reth.length <=
               value.memory.length - std::min<std::uint64_t>(offset, value.memory.length);
  });
  if (found == remembered_.end()) return;
  Value again = *found;
  again.range = range;
  again.memory = request.reth;
  answer_again(again);
}

// Further repetitions are ignored.
void Responder::answer_again(Value value) {
  if (answers_.size() >= kMostAnswers) return;
  value.repeated = true;
  answers_.push_back(value);
}

}  // namespace weft::transport
