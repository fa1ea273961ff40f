// SPDX-License-Identifier: BSD-2-Clause
// How does work become packets?
#include "transport/requester.h"

#include <algorithm>
#include <utility>

#include "packets.h"

namespace weft::transport {

using wire::Operation;

namespace {

// An answer is asked for at the end of what there is to send, and this often in between.
constexpr unsigned kAskEvery = 16;
// Numbers that may be used behind a read whose answer is still to come: they must not come around
// the circle.
constexpr std::int32_t kFarthest = 1 << 16;
// Within less time losses have one cause: a queue that was full.
constexpr Duration kBetweenTries = std::chrono::milliseconds(20);

}  // namespace

Requester::Requester(const Settings& settings, WorkSink& sink, LocalMemory& memory)
    : settings_(settings),
      sink_(sink),
      memory_(memory),
      window_(settings),
      next_(settings.first_sent),
      acknowledged_(settings.first_sent),
      told_of_(settings.first_sent),
      asked_(settings.first_sent),
      rto_(window_.rto()) {}

// While fail() reports what has ended, the new one waits behind it.
void Requester::post(const Work& work) {
  if (failed_ && messages_.empty()) return sink_.ended({work.cookie, Status::kFlushed, 0});
  Message& message = messages_.emplace_back();
  message.work = work;
  message.piece_count = std::min(work.pieces.size(), kMaxPieces);
  std::copy_n(work.pieces.begin(), message.piece_count, message.pieces.begin());
  message.work.pieces = {};
}

bool Requester::withdraw(const void* cookie) {
  const auto unsent = std::find_if(messages_.begin() + static_cast<std::ptrdiff_t>(cutting_),
                                   messages_.end(), [&](const Message& message) {
                                     return message.work.cookie == cookie &&
                                            message.work.kind == WorkKind::kSend &&
                                            !message.begun() && !message.resync;
                                   });
  if (unsent == messages_.end()) return false;
  messages_.erase(unsent);
  return true;
}

// Of the way a part takes at most the half, but for the shortest.
std::uint32_t Requester::part_of_read() const {
  return std::clamp(window_.size() / 2, kReadPart, AnswerSet::kMost);
}

// What is more than a part of the read that is to begin becomes a message of its own behind it.
void Requester::split(std::size_t place) {
  const std::uint64_t part = part_of_read() * settings_.path_mtu;
  if (!messages_[place].reads() || messages_[place].work.length <= part) return;
  Message rest = messages_[place];
  messages_[place].work.length = part;
  messages_[place].whole = false;
  rest.work.length -= part;
  rest.work.address += part;
  rest.offset += part;
  messages_.insert(messages_.begin() + static_cast<std::ptrdiff_t>(place + 1), rest);
}

// What the peer keeps behind a missing packet is not in flight any more, though it is not
// acknowledged: else repairs would wait for the end of their own wait.
std::uint32_t Requester::under_way() const {
  return static_cast<std::uint32_t>(next_.since(told_of_)) + repairs_.count();
}

std::uint32_t Requester::at_hand() const {
  if (cutting_ >= messages_.size()) return 0;
  const Message& message = messages_[cutting_];
  if (message.asks()) return 1;
  const std::uint32_t left = message.begun() ? message.packets - message.cut
                                             : packets_for(message.work.length, settings_.path_mtu);
  const std::uint32_t size = window_.size();
  return std::min(left, size - std::min(size, under_way()));
}

void Requester::lacks(PsnRange range) {
  missing_.add(range);
  repairs_.remove(range);
  told(range.end());
}

void Requester::told(Psn end) {
  if (told_of_.before(end)) told_of_ = end;
}

bool Requester::may_begin(const Message& message) const {
  if (held_) return false;
  if (message.asks() && remembered_ >= std::max(settings_.max_reads, 1U)) return false;
  if (message.work.fence && asking_ != 0) return false;
  // Long parts do not exceed the window by more than short ones do.
  if (!message.reads()) return true;
  const std::uint32_t part =
      std::min(packets_for(message.work.length, settings_.path_mtu), part_of_read());
  return under_way() + part <= window_.size() + kReadPart;
}

bool Requester::may_cut() const {
  if (cutting_ >= messages_.size() || under_way() >= window_.size()) return false;
  // No peer keeps more behind a gap, and a peer that does not report the gap must not make it grow.
  const auto farthest = static_cast<std::int32_t>(std::max(kMaxHeld, settings_.max_window));
  if (next_.since(acknowledged_) >= farthest) return false;
  const Message& message = messages_[cutting_];
  if (resync_ && !message.resync) return false;
  const Message& oldest = messages_.front();
  if (oldest.begun() && oldest.asks() && next_.since(oldest.first) > kFarthest) return false;
  return message.begun() || may_begin(message);
}

bool Requester::may_repair() const {
  return !missing_.empty() && (probes_ != 0 || under_way() < window_.size());
}

bool Requester::ready(Time now) const {
  if (failed_ || waits(now)) return false;
  return asking_again_ != 0 || may_repair() || may_cut();
}

std::size_t Requester::next(Time now, std::span<std::byte> out) {
  if (failed_ || waits(now)) return 0;
  go_on(now);
  if (asking_again_ != 0) return ask_again(now, out);
  if (may_repair()) return send_missing(now, out);
  return may_cut() ? cut_next(now, out) : 0;
}

// The RNR timer has expired: its time does not count as silence of the peer.
void Requester::go_on(Time now) {
  if (std::exchange(waiting_, false) && try_again_ != Time::max()) progressed(now);
}

void Requester::begin(Message& message) {
  message.first = next_;
  message.packets = message.resync
                        ? 1
                        : packets_for(message.asks() && !message.reads() ? 0 : message.work.length,
                                      settings_.path_mtu);
  if (!message.asks()) return;
  ++asking_;
  ++remembered_;
}

bool Requester::wants_answer(const Message& message) {
  if (message.asks()) {
    unasked_ = 0;
    return false;  // its answer answers for all before it
  }
  ++unasked_;
  const bool end = message.cut + 1 == message.packets;
  prompt_ = prompt_ || !settings_.selective || (end && (message.work.prompt || message.resync));
  const bool last = prompt_ && end && cutting_ + 1 == messages_.size();
  if (!last && unasked_ < kAskEvery && under_way() + 1 < window_.size()) return false;
  unasked_ = 0;
  prompt_ = false;
  return true;
}

std::size_t Requester::cut_next(Time now, std::span<std::byte> out) {
  if (!messages_[cutting_].begun()) split(cutting_);
  Message& message = messages_[cutting_];
  if (!message.begun()) begin(message);
  const std::uint32_t index = message.cut;
  const std::uint32_t count = message.reads() ? message.packets : 1;
  const bool ask = wants_answer(message);
  const std::size_t length = write(message, index, count, ask, out);
  if (length == 0) return 0;  // the message is gone
  message.cut += count;
  message.asked = now;
  const Psn psn = next_;
  next_ = next_.after(static_cast<std::int32_t>(count));
  if (message.cut == message.packets) ++cutting_;
  if (ask || message.asks()) {
    asked_ = next_;
    if (!timed_) {
      timed_ = psn;
      timed_at_ = now;
    }
  }
  sent(psn, false, now);
  return length;
}

// Retransmissions: packets one by one, but of a read all responses in a row. Each belongs to a
// message that is still queued, as a completed message was acknowledged as a whole.
std::size_t Requester::send_missing(Time now, std::span<std::byte> out) {
  const Psn psn = missing_.front().first;
  Message& message = *find(psn);
  const auto index = static_cast<std::uint32_t>(psn.since(message.first));
  const std::uint32_t count = message.reads() ? message.packets - index : 1;
  missing_.remove({psn, count});
  repairs_.add({psn, count});
  message.asked = now;
  if (psn == acknowledged_) tried_again(now);
  sent(psn, true, now);
  if (probes_ != 0) --probes_;
  ++unasked_;
  const bool ask = !message.asks() && (!may_repair() || unasked_ >= kAskEvery);
  if (ask) unasked_ = 0;
  if (ask && asked_.before(psn.after(1))) asked_ = psn.after(1);
  return write(message, index, count, ask, out);
}

// Answers with values that were lost though their requests were not.
std::size_t Requester::ask_again(Time now, std::span<std::byte> out) {
  const auto message = std::find_if(messages_.begin(), messages_.end(),
                                    [](const Message& each) { return !each.again.empty(); });
  const std::uint32_t index = message->again.first_from(0);
  const std::uint32_t count = message->again.gap_from(index) - index;
  message->again = message->again.without(AnswerSet(index, count));
  if (message->again.empty()) --asking_again_;
  message->asked = now;
  if (message == messages_.begin()) tried_again(now);
  sent(message->first.after(static_cast<std::int32_t>(index)), true, now);
  return write(*message, index, count, false, out);
}

void Requester::sent(Psn psn, bool again, Time now) {
  ++counts_.packets;
  if (again) {
    ++counts_.again;
    if (timed_ && !timed_->before(psn)) timed_.reset();
  }
  if (try_again_ != Time::max()) return;
  heard_ = now;
  timeouts_ = 0;
  rto_ = window_.rto();
  try_again_ = now + rto_;
}

// Bytes of the message in its packet number `index`, or in the answer with that number.
std::size_t Requester::payload_of(const Message& message, std::uint32_t index) const {
  const std::uint64_t begin = std::uint64_t{index} * settings_.path_mtu;
  if (begin >= message.work.length) return 0;
  return std::min<std::uint64_t>(settings_.path_mtu, message.work.length - begin);
}

// Of the packet that the peer lacks first, or of the answer to it.
std::size_t Requester::oldest_bytes() const {
  if (!has_begun()) return 0;
  const Message& oldest = messages_.front();
  if (lacks_answer(oldest)) return payload_of(oldest, oldest.first_lacking());
  const std::int32_t index = std::max(acknowledged_.since(oldest.first), 0);
  return payload_of(oldest, static_cast<std::uint32_t>(index));
}

// Only what others get through meanwhile says something about its size.
void Requester::tried_again(Time now) {
  if (!heard_since_ || now - tried_at_ < kBetweenTries) return;
  if (oldest_bytes() <= kSurePathMtu) return;
  heard_since_ = false;
  tried_at_ = now;
  ++large_retries_;
}

// Packet number `index` of the message, which of a read asks for `count` answers from there on.
std::size_t Requester::write(Message& message, std::uint32_t index, std::uint32_t count, bool ask,
                             std::span<std::byte> out) {
  const Work& work = message.work;
  const bool last = index + 1 == message.packets;
  wire::Packet packet;
  packet.opcode = opcode_of(
      settings_.kind, message.resync ? Operation::kResync : operation_of(work, index == 0, last));
  packet.solicited = work.solicited && last;
  packet.ack_request = ask;
  packet.pkey = settings_.pkey;
  packet.destination = settings_.destination;
  packet.psn = message.first.after(static_cast<std::int32_t>(index));
  packet.end_to_end_context = settings_.context;
  packet.queue_key = settings_.queue_key;
  packet.source = settings_.source;
  packet.shared_receive = settings_.shared_receive;
  packet.immediate = packet.invalidate = work.immediate;
  packet.atomic = {work.address, work.key, work.swap_or_add, work.compare};
  packet.reth = {work.address, work.key, static_cast<std::uint32_t>(work.length)};
  std::size_t payload = 0;
  if (message.reads()) {
    const std::uint64_t begin = std::uint64_t{index} * settings_.path_mtu;
    const std::uint64_t left = work.length - std::min(begin, work.length);
    packet.reth.address += begin;
    packet.reth.length = static_cast<std::uint32_t>(
        std::min<std::uint64_t>(left, std::uint64_t{count} * settings_.path_mtu));
  } else if (!message.asks() && !message.resync) {
    payload = payload_of(message, index);
  }
  const std::size_t length = write_packet(packet, memory_, message.buffers(),
                                          std::uint64_t{index} * settings_.path_mtu, payload, out);
  if (length == 0) {
    message.status = Status::kLocalProtection;
    fail(Status::kFlushed);
  }
  return length;
}

Time Requester::due() const {
  const bool sends = !waiting_ && (asking_again_ != 0 || may_repair() || may_cut());
  return sends && !failed_ ? Time::min() : deadline();
}

Time Requester::deadline() const {
  if (failed_ || messages_.empty()) return Time::max();
  return waiting_ ? not_before_ : try_again_;
}

// Nothing was heard for too long.
void Requester::tick(Time now) {
  if (failed_ || waits(now)) return;
  go_on(now);
  if (now < try_again_) return;
  const bool due = is_answer_due();
  if (due) ++counts_.timeouts;
  ++timeouts_;
  // If the caller has not polled meanwhile, a response may have arrived unread.
  const bool limited = settings_.ack_timeout != Duration::max() && timeouts_ > settings_.retries;
  if (limited && now - heard_ >= settings_.ack_timeout * (settings_.retries + 1)) {
    return fail(Status::kRetriesExceeded);
  }
  // One that names what it lacks is asked once before the worst is assumed.
  if (due && (!settings_.selective || timeouts_ > 1)) window_.silent();
  probe();
  for (Message& message : messages_) {
    if (!message.begun()) break;
    if (message.asks() && !message.ended && message.first.before(acknowledged_)) {
      ask_for(message, message.lacks_before(acknowledged_));
    }
  }
  rto_ = std::min(2 * rto_, settings_.ack_timeout);
  try_again_ = now + rto_;
}

// A peer that names what it lacks is made to speak by the first packet, and by the last, which
// tells it of all that it lacks between them; what it was sent again may be lost again. Others need
// all of them.
void Requester::probe() {
  const auto sent = static_cast<std::uint32_t>(next_.since(acknowledged_));
  if (sent == 0) return;
  if (!settings_.selective) return lacks({acknowledged_, sent});
  for (const PsnRange& range : repairs_) missing_.add(range);
  repairs_.clear();
  probes_ = 2;
  missing_.add({acknowledged_, 1});
  const Message& last = *find(next_.after(-1));
  const Psn psn = last.reads() ? last.first : next_.after(-1);
  if (acknowledged_.before(psn)) missing_.add({psn, 1});
}

// What is posted meanwhile comes behind the others.
void Requester::fail(Status status) {
  if (failed_) return;
  failed_ = true;
  missing_.clear();
  repairs_.clear();
  for (; !messages_.empty(); pop()) {
    Message& message = messages_.front();
    if (settled(message) || message.status != Status::kSuccess || message.resync) continue;
    message.status = std::exchange(status, Status::kFlushed);
  }
}

}  // namespace weft::transport
