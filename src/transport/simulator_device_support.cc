// SPDX-License-Identifier: BSD-2-Clause
// Does every user of the simulator get what its peer sent, once, whole and in order?
#include "simulator_device.h"
#include "test_flow.h"

#include <cstring>
#include <utility>

#include "wire/cm_message.h"
#include "wire/endian.h"

namespace weft::transport::testing {
namespace {

using work::CompletionStatus;
using work::RequestVerdict;
using work::Work;
using work::WorkKind;

// Room for the longest work in many places.
std::size_t area_bytes(const Scenario& scenario) {
  return std::max<std::size_t>(128 * 1024, 2 * scenario.longest);
}
constexpr std::size_t kNumberBytes = 8;
constexpr std::size_t kMostPending = 12;
constexpr std::uint64_t kCompared = 0x3000;
constexpr Duration kBetweenChanges = std::chrono::milliseconds(1);
constexpr std::size_t kPathMtuChangeBytes = 9;

std::uint64_t number_in(const Bytes& message) {
  std::uint64_t number = ~0ULL;
  if (message.size() >= sizeof number) std::memcpy(&number, message.data(), sizeof number);
  return number;
}

}  // namespace

Bytes content(std::uint64_t flow, std::uint64_t number, std::size_t length) {
  Bytes bytes(length);
  std::uint64_t state = flow * 0x9E3779B97F4A7C15 + number * 0xBF58476D1CE4E5B9;
  for (std::byte& byte : bytes) {
    state = state * 6364136223846793005 + 1442695040888963407;
    byte = static_cast<std::byte>(state >> 56);
  }
  std::memcpy(bytes.data(), &number, std::min(length, sizeof number));
  return bytes;
}

FlowEnd::FlowEnd(const Scenario& scenario, std::uint64_t way, std::uint64_t way_back,
                 Settings settings)
    : scenario_(scenario),
      way_(way),
      way_back_(way_back),
      random_(scenario.seed * 1000 + way),
      left_(scenario.works),
      area_(area_bytes(scenario)),
      readable_(content(way_back, ~0ULL, area_.size())),
      path_mtu_(settings.path_mtu),
      carries_(settings.path_mtu),
      requester_(counted(settings, stats_), *this, memory_),
      responder_(settings, *this) {}

void FlowEnd::blame(const std::string& what) {
  if (wrong_.empty()) wrong_ = "flow " + std::to_string(way_) + ": " + what;
}

void FlowEnd::draw(Pending& pending) {
  Work& work = pending.work;
  work.kind = static_cast<WorkKind>(up_to(random_, 4));
  const std::size_t most = happens(random_, 0.2) ? scenario_.longest : 200;
  const std::size_t length = kNumberBytes + up_to(random_, most);
  work.fence = happens(random_, scenario_.fenced);
  work.prompt = happens(random_, 0.5);
  work.has_immediate = work.kind <= WorkKind::kWrite && happens(random_, 0.3);
  work.immediate = static_cast<std::uint32_t>(pending.number);
  work.length = length;
  work.key = kGoodKey;
  work.shared_receive = kSharedReceive;
  pending.bytes =
      work.kind == WorkKind::kRead ? Bytes(length) : content(way_, pending.number, length);
  if (work.kind == WorkKind::kWrite)
    work.address = kWriteArea + up_to(random_, area_.size() - length);
  if (work.kind == WorkKind::kRead)
    work.address = kReadArea + up_to(random_, area_.size() - length);
  if (work.kind >= WorkKind::kCompareSwap) {
    const bool compares = work.kind == WorkKind::kCompareSwap;
    work.length = 8;
    work.address = compares ? kCompared : kCounter;
    work.compare = swapped_;
    work.swap_or_add = compares ? pending.number + 1 : 1;
    work.original = &pending.original;
  }
  const bool by_key = work.kind != WorkKind::kSend;
  pending.to_be_refused = by_key && happens(random_, scenario_.refused);
  if (pending.to_be_refused) work.key = kBadKey;
  pending.to_be_lost =
      work.kind == WorkKind::kRead && happens(random_, scenario_.gone) && !pending.to_be_refused;
  if (pending.to_be_lost) work.key = kGoneKey;
  if (work.kind == WorkKind::kCompareSwap && !pending.to_be_refused) swapped_ = work.swap_or_add;
}

void FlowEnd::work() {
  while (left_ != 0 && pending_.size() < kMostPending) {
    --left_;
    auto pending = std::make_unique<Pending>();
    pending->number = next_number_++;
    draw(*pending);
    Work work = pending->work;
    const work::Segment halves[] = {{pending->bytes.data(), pending->bytes.size() / 3},
                                    {pending->bytes.data() + pending->bytes.size() / 3,
                                     pending->bytes.size() - pending->bytes.size() / 3}};
    if (work.kind < WorkKind::kCompareSwap) work.sges = halves;
    work.cookie = pending.get();
    pending_.push_back(std::move(pending));
    requester_.post(work);
  }
}

void FlowEnd::ended(const work::Ended& work) {
  ++statuses_[static_cast<std::size_t>(work.status)];
  if (pending_.empty() || work.cookie != pending_.front().get()) return blame("ends out of order");
  const std::unique_ptr<Pending> pending = std::move(pending_.front());
  pending_.pop_front();
  if (pending->to_be_refused && work.status != CompletionStatus::kFlushed) {
    if (work.status != CompletionStatus::kRemoteAccess ||
        work.detail != (scenario_.detailed ? kWhy : 0))
      blame("was not refused");
    return;
  }
  if (pending->to_be_lost && work.status != CompletionStatus::kFlushed) {
    if (work.status != CompletionStatus::kRemoteOperation) blame("a read of nothing ended well");
    return;
  }
  if (work.status == CompletionStatus::kSuccess) return check(*pending);
  may_fail_ = true;
}

void FlowEnd::check(const Pending& pending) {
  const Work& work = pending.work;
  switch (work.kind) {
    case WorkKind::kSend:
      return sent_.push_back(pending.number);
    case WorkKind::kWrite:
      return writes_.push_back({work.address - kWriteArea, pending.bytes});
    case WorkKind::kRead: {
      const std::byte* there = peer_->readable_.data() + (work.address - kReadArea);
      if (!std::equal(pending.bytes.begin(), pending.bytes.end(), there)) blame("wrong bytes read");
      return;
    }
    case WorkKind::kCompareSwap:
      if (pending.original != work.compare) blame("a swap found something else");
      return;
    case WorkKind::kFetchAdd:
      ++added_;
      if (!originals_.insert(pending.original).second) blame("the same value was fetched twice");
      return;
  }
}

void FlowEnd::judge() {
  if (may_fail_) return;
  if (sent_ != peer_->received_) blame("messages were lost, repeated or misordered");
  if (peer_->counter_ != added_) blame("additions were lost or repeated");
  Bytes model(area_.size());
  for (const Write& write : writes_) {
    std::copy(write.bytes.begin(), write.bytes.end(),
              model.begin() + static_cast<std::ptrdiff_t>(write.offset));
  }
  if (model != peer_->area_) blame("memory does not hold what was written");
}

void FlowEnd::count(Outcome& outcome) const {
  outcome.packets += stats_.of(Stat::kPacketsSent);
  outcome.again += stats_.of(Stat::kRetransmissions);
  if (path_mtu_ < scenario_.settings.path_mtu) ++outcome.narrowed;
  for (std::size_t i = 0; i < std::size(statuses_); ++i) outcome.ended[i] += statuses_[i];
}

void FlowEnd::take(const wire::Packet& packet, Time now) {
  if (wire::transport_of(packet.opcode) == wire::Transport::kUnreliableDatagram) {
    const std::byte* at = packet.payload.data();
    const auto first = wire::load<std::uint32_t>(at + 5);
    return take_change(
        {(first >> 24) != 0, wire::load<std::uint8_t>(at), wire::load<std::uint16_t>(at + 1),
         wire::load<std::uint16_t>(at + 3), Psn(first & Psn::kMask)},
        now);
  }
  if (wire::layout_of(packet.opcode).request) {
    responder_.take(packet, now);
  } else {
    requester_.take(packet, now);
  }
}

void FlowEnd::tick(Time now) {
  requester_.tick(now);
  if (requester_.pmtu_probing()) request_owed_ = true;
  if (now < asks_at_) return;
  request_owed_ = changing_;
  asks_at_ = changing_ ? now + kBetweenChanges : Time::max();
}

// Each end tells the other a smaller path MTU that it knows or suspects.
void FlowEnd::narrow(std::size_t carries) {
  if (carries >= carries_) return;
  carries_ = carries;
  changing_ = true;
  ++changes_;
  requester_.pause();
  asks_at_ = Time{};
}

void FlowEnd::take_change(const PathMtuChange& change, Time now) {
  narrow(change.carries);
  if (!change.answers) {
    if (change.changes == static_cast<std::uint8_t>(peer_changes_ + 1)) {
      peer_changes_ = change.changes;
      executed_ = responder_.restart(change.first, change.path_mtu);
    }
    answer_owed_ = true;
    return;
  }
  requester_.note_received();
  if (!changing_ || change.changes != changes_) return;
  if (!requester_.restart(change.first, change.path_mtu, now)) return;
  changing_ = false;
  path_mtu_ = change.path_mtu;
}

std::size_t FlowEnd::write(const PathMtuChange& change, std::span<std::byte> out) const {
  wire::Packet packet;
  packet.opcode = opcode_of(wire::Transport::kUnreliableDatagram, wire::Operation::kSendOnly);
  packet.destination = packet.source = wire::kCmQpn;
  wire::write_headers(packet, kPathMtuChangeBytes, out.data());
  std::byte* at = out.data() + wire::header_bytes(packet);
  wire::store<std::uint8_t>(at, change.changes);
  wire::store<std::uint16_t>(at + 1, static_cast<std::uint16_t>(change.carries));
  wire::store<std::uint16_t>(at + 3, static_cast<std::uint16_t>(change.path_mtu));
  const std::uint32_t answers = change.answers ? 1U << 24 : 0;
  wire::store<std::uint32_t>(at + 5, answers | change.first.value());
  const std::size_t padding = wire::padding_of(kPathMtuChangeBytes);
  std::memset(at + kPathMtuChangeBytes, 0, padding);
  return wire::header_bytes(packet) + kPathMtuChangeBytes + padding;
}

std::size_t FlowEnd::next(Time now, std::span<std::byte> out) {
  if (requester_.pmtu_black_hole()) narrow(kSurePathMtu);
  if (std::exchange(answer_owed_, false)) {
    const std::size_t path_mtu = responder_.settings().path_mtu;
    return write(PathMtuChange{true, peer_changes_, carries_, path_mtu, executed_}, out);
  }
  if (std::exchange(request_owed_, false)) {
    const std::size_t path_mtu = changing_ ? carries_ : path_mtu_;
    return write(PathMtuChange{false, changes_, carries_, path_mtu, requester_.unused()}, out);
  }
  const Time since = responder_.unanswered_since();
  if (since != Time::max() && now - since >= kLazily) responder_.answer_all();
  const std::size_t answer = responder_.next(out);
  return answer != 0 ? answer : requester_.next(now, out);
}

// Both ends call theirs the same.
RequestVerdict FlowEnd::may_use(std::uint32_t shared_receive) {
  if (shared_receive == kSharedReceive) return {};
  return {RequestVerdict::Kind::kInvalid, 0};
}

RequestVerdict FlowEnd::message_begins() {
  if (happens(random_, scenario_.not_ready)) return {RequestVerdict::Kind::kNotReady, 0};
  return {};
}

RequestVerdict FlowEnd::message_goes_on(std::span<const std::byte> bytes) {
  if (!message_.empty() && happens(random_, scenario_.given_up))
    return {RequestVerdict::Kind::kGivenUp, 0};
  message_.insert(message_.end(), bytes.begin(), bytes.end());
  return {};
}

void FlowEnd::message_ends(const work::MessageEnd& end) {
  const Bytes message = std::exchange(message_, {});
  const std::uint64_t number = number_in(message);
  received_.push_back(number);
  if (message != content(way_back_, number, message.size())) blame("a message was changed");
  if (end.has_immediate && end.immediate != number) blame("a message has a wrong immediate value");
}

RequestVerdict FlowEnd::may_access(Access need, const work::RemoteMemory& memory) {
  if (memory.key != kGoodKey && memory.key != kGoneKey)
    return {RequestVerdict::Kind::kAccess, kWhy};
  const std::uint64_t area = need == Access::kRemoteWrite ? kWriteArea : kReadArea;
  const bool within =
      memory.address >= area && memory.address - area + memory.length <= area_.size();
  if (!within) blame("an access to memory that no request named");
  return within ? RequestVerdict{} : RequestVerdict{RequestVerdict::Kind::kAccess, 1};
}

RequestVerdict FlowEnd::write(const work::RemoteMemory& memory, std::uint64_t offset,
                              std::span<const std::byte> bytes) {
  const std::uint64_t at = memory.address - kWriteArea + offset;
  std::copy(bytes.begin(), bytes.end(), area_.begin() + static_cast<std::ptrdiff_t>(at));
  return {};
}

RequestVerdict FlowEnd::read(const work::RemoteMemory& memory, std::uint64_t offset,
                             std::span<std::byte> out) {
  // Half of the reads lose their memory at once, others when the last packet is to be answered.
  const bool last = offset + out.size() == memory.length;
  if (memory.key == kGoneKey && (memory.address % 2 == 0 || last))
    return {RequestVerdict::Kind::kOperational, 0};
  std::memcpy(out.data(), readable_.data() + (memory.address - kReadArea) + offset, out.size());
  return {};
}

RequestVerdict FlowEnd::atomic(bool compares, const work::AtomicOperands& what,
                               std::uint64_t& original) {
  if (what.key != kGoodKey) return {RequestVerdict::Kind::kAccess, kWhy};
  std::uint64_t& value = compares ? compared_ : counter_;
  if (what.address != (compares ? kCompared : kCounter)) blame("an atomic operation elsewhere");
  original = value;
  if (!compares) {
    value += what.swap_or_add;
  } else if (value == what.compare) {
    value = what.swap_or_add;
  }
  return {};
}

}  // namespace weft::transport::testing
