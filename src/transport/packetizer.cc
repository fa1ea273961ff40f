// SPDX-License-Identifier: BSD-2-Clause
// Which packet of the posted work leaves next?
#include "transport/packetizer.h"

#include <algorithm>

#include "packets.h"

namespace weft::transport {

using wire::Operation;

namespace {

// An answer is asked for at the end of the posted work, and this often in between.
constexpr unsigned kAskEvery = 16;
// Numbers that may be used behind a read whose answer is still to come: numbers must not wrap
// around to those of the read.
constexpr std::int32_t kFarthest = 1 << 16;

// Packet number `index` of that work; of a read it asks for `count` answers from there on.
wire::Packet request_packet(const Settings& settings, const QueuedWork& queued, std::uint32_t index,
                            std::uint32_t count) {
  const work::Work& work = queued.work;
  const bool first = index == 0 && !queued.continues;
  const bool last = index + 1 == queued.packets;
  wire::Packet packet;
  packet.opcode = opcode_of(settings.kind,
                            queued.resync ? Operation::kResync : operation_of(work, first, last));
  packet.solicited = work.solicited && last;
  packet.pkey = settings.pkey;
  packet.destination = settings.destination;
  packet.psn = queued.first.after(static_cast<std::int32_t>(index));
  packet.end_to_end_context = settings.context;
  packet.queue_key = settings.queue_key;
  packet.source = settings.source;
  packet.shared_receive = work.shared_receive;
  packet.immediate = packet.invalidate = work.immediate;
  packet.atomic = {work.address, work.key, work.swap_or_add, work.compare};
  packet.reth = {work.address, work.key, static_cast<std::uint32_t>(work.length)};
  if (queued.reads()) {
    const std::uint64_t begin = std::uint64_t{index} * settings.path_mtu;
    const std::uint64_t left = work.length - std::min(begin, work.length);
    packet.reth.address += begin;
    packet.reth.length = static_cast<std::uint32_t>(
        std::min<std::uint64_t>(left, std::uint64_t{count} * settings.path_mtu));
  }
  return packet;
}

}  // namespace

// A part takes at most half of the window, except the shortest part.
std::uint32_t Packetizer::part_of_read() const {
  return std::clamp(window_.size() / 2, kReadPart, AnswerSet::kMost);
}

std::uint32_t Packetizer::at_hand() const {
  const QueuedWork* unsent = queue_.unsent();
  if (unsent == nullptr) return 0;
  if (unsent->asks()) return 1;
  const std::uint32_t left = unsent->begun() ? unsent->packets - unsent->cut
                                             : packets_for(unsent->work.length, settings_.path_mtu);
  const std::uint32_t size = window_.size();
  return std::min(left, size - std::min(size, in_flight_.count()));
}

bool Packetizer::may_begin(const QueuedWork& work) const {
  if (work.asks() && queue_.remembered() >= std::max(settings_.max_reads, 1U)) return false;
  if (work.work.fence && queue_.awaited() != 0) return false;
  // Long parts do not exceed the window by more than short ones do.
  if (!work.reads()) return true;
  const std::uint32_t part =
      std::min(packets_for(work.work.length, settings_.path_mtu), part_of_read());
  return in_flight_.count() + part <= window_.size() + kReadPart;
}

bool Packetizer::may_cut() const {
  const QueuedWork* unsent = queue_.unsent();
  if (stopped_ || unsent == nullptr || in_flight_.count() >= window_.size()) return false;
  // No peer keeps more behind a gap, and a peer that does not report the gap must not make it grow.
  if (in_flight_.unacknowledged() >= std::max(kMaxHeld, settings_.max_window)) return false;
  if (resync_ && !unsent->resync) return false;
  const QueuedWork& oldest = queue_.front();
  const bool too_far =
      oldest.begun() && oldest.asks() && in_flight_.next().since(oldest.first) > kFarthest;
  return !too_far && (unsent->begun() || may_begin(*unsent));
}

std::optional<std::size_t> Packetizer::next(Time now, std::span<std::byte> out) {
  if (queue_.asks_again()) return ask_again(now, out);
  if (paused_) return 0;
  if (in_flight_.may_repair(window_.size())) return send_missing(now, out);
  return may_cut() ? cut_next(now, out) : 0;
}

bool Packetizer::wants_answer(const QueuedWork& work) {
  if (work.asks()) {
    unasked_ = 0;
    return false;  // its answer answers for all before it
  }
  ++unasked_;
  const bool end = work.cut + 1 == work.packets;
  prompt_ = prompt_ || !settings_.selective || (end && (work.work.prompt || work.resync));
  const bool last = prompt_ && end && queue_.unsent_is_last();
  if (!last && unasked_ < kAskEvery && in_flight_.count() + 1 < window_.size()) return false;
  unasked_ = 0;
  prompt_ = false;
  return true;
}

Packetizer::Written Packetizer::cut_next(Time now, std::span<std::byte> out) {
  const Psn psn = in_flight_.next();
  if (queue_.unsent()->status != work::CompletionStatus::kSuccess) return std::nullopt;
  if (!queue_.unsent()->begun()) {
    queue_.begin_unsent(psn, part_of_read() * settings_.path_mtu, settings_.path_mtu);
  }
  QueuedWork& work = *queue_.unsent();
  const std::uint32_t count = work.reads() ? work.packets : 1;
  const bool ask = wants_answer(work);
  const Written length = write(work, work.cut, count, ask, out);
  if (!length) return length;
  work.asked = now;
  in_flight_.sent(count);
  queue_.sent(count);
  if (ask || work.asks()) {
    asked_ = in_flight_.next();
    if (!timed_) {
      timed_ = psn;
      timed_at_ = now;
    }
  }
  settings_.stats->add(Stat::kPacketsSent);
  return length;
}

// Retransmissions: packets one by one, but of a read all responses in a row. Each belongs to work
// that is still queued, as completed work was acknowledged as a whole.
Packetizer::Written Packetizer::send_missing(Time now, std::span<std::byte> out) {
  const Psn psn = in_flight_.first_missing();
  QueuedWork& work = *queue_.find(psn);
  const auto index = static_cast<std::uint32_t>(psn.since(work.first));
  const std::uint32_t count = work.reads() ? work.packets - index : 1;
  in_flight_.repaired({psn, count});
  work.asked = now;
  if (psn == in_flight_.acknowledged()) tried_again(now);
  sent_again(psn);
  ++unasked_;
  const bool more = in_flight_.may_repair(window_.size()) && unasked_ < kAskEvery;
  const bool ask = !work.asks() && !more;
  if (ask) unasked_ = 0;
  if (ask && asked_.before(psn.after(1))) asked_ = psn.after(1);
  return write(work, index, count, ask, out);
}

// Answers with values that were lost though their requests were not.
Packetizer::Written Packetizer::ask_again(Time now, std::span<std::byte> out) {
  QueuedWork& work = queue_.first_asking_again();
  const std::uint32_t index = work.again.first_from(0);
  const std::uint32_t count = work.again.gap_from(index) - index;
  queue_.asked_for(work, AnswerSet(index, count));
  work.asked = now;
  if (&work == &queue_.front()) tried_again(now);
  sent_again(work.first.after(static_cast<std::int32_t>(index)));
  return write(work, index, count, false, out);
}

// Karn's algorithm: a round trip is not measured across a retransmission.
void Packetizer::sent_again(Psn psn) {
  settings_.stats->add(Stat::kPacketsSent);
  settings_.stats->add(Stat::kRetransmissions);
  if (timed_ && !timed_->before(psn)) timed_.reset();
}

void Packetizer::tried_again(Time now) {
  black_hole_.retried(queue_.oldest_bytes(in_flight_.acknowledged(), settings_.path_mtu), now);
}

Packetizer::Written Packetizer::write(QueuedWork& work, std::uint32_t index, std::uint32_t count,
                                      bool ask, std::span<std::byte> out) {
  wire::Packet packet = request_packet(settings_, work, index, count);
  packet.ack_request = ask;
  const bool carries = !work.asks() && !work.resync;
  const std::size_t payload = carries ? work.payload_of(index, settings_.path_mtu) : 0;
  const std::uint64_t begin = work.offset + std::uint64_t{index} * settings_.path_mtu;
  const std::size_t length = write_packet(packet, memory_, work.buffers(), begin, payload, out);
  if (length != 0) return length;
  work.status = work::CompletionStatus::kLocalProtection;
  return std::nullopt;
}

std::optional<Duration> Packetizer::acknowledged(Psn end, Time now) {
  if (asked_.before(end)) asked_ = end;
  if (resync_ && resync_->before(end)) resync_.reset();
  if (!timed_ || !timed_->before(end)) return std::nullopt;
  timed_.reset();
  return now - timed_at_;
}

void Packetizer::restart() {
  paused_ = prompt_ = false;
  unasked_ = 0;
  asked_ = in_flight_.next();
  resync_.reset();
}

void Packetizer::resynchronise() {
  timed_.reset();
  resync_ = in_flight_.next();
}

}  // namespace weft::transport
