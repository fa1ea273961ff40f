// SPDX-License-Identifier: BSD-2-Clause
// How does a connected queue pair reach its peer by packets?
#include "packet_link.h"

#include <algorithm>

#include "target.h"

namespace weft::queue {
namespace {

// Packets that leave without a look at what has arrived.
constexpr unsigned kPacketsAtOnce = 128;
// Delayed acknowledgement: a request that asks for none gets one after this time.
constexpr auto kLazily = ReplyForecast::kWait;
// A small request that is posted while so many packets are in flight waits for others, so that they
// share a system call, here and at the peer, and an acknowledgement: until there are so many of
// them, or so long.
constexpr unsigned kStream = 8;
constexpr unsigned kTogether = 16;
constexpr std::size_t kBytesTogether = 4096;
constexpr auto kGathers = std::chrono::microseconds(20);
// Behind so many packets in flight it waits longer: each answer makes room for few requests.
constexpr unsigned kLongStream = 64;
constexpr auto kGathersLong = std::chrono::microseconds(100);
// Acknowledgements wait for requests only where ACK timeouts, those of the peer being as long, are
// far longer than a program that has stopped polling leaves anything waiting.
constexpr auto kPatient = std::chrono::milliseconds(16);
// A foreign peer keeps no packets behind a gap.
constexpr unsigned kForeignWindow = 128;

wire::Transport transport_of(QpType type) {
  switch (type) {
    case QpType::kRc:
      return wire::Transport::kReliableConnection;
    case QpType::kUc:
      return wire::Transport::kUnreliableConnection;
    case QpType::kUd:
      return wire::Transport::kUnreliableDatagram;
    case QpType::kXrcSend:
    case QpType::kXrcReceive:
      return wire::Transport::kExtendedReliable;
  }
  return wire::Transport::kReliableConnection;
}

// Packets in flight that the peer's socket has room for: the kernel charges about twice the bytes.
unsigned window_for(std::size_t room, std::size_t path_mtu) {
  return static_cast<unsigned>(std::clamp<std::size_t>(room / (2 * (path_mtu + 512)), 16, 512));
}

transport::Settings settings_of(QpType type, const QpAttributes& attributes,
                                const LinkParts& parts) {
  transport::Settings settings;
  settings.kind = transport_of(type);
  settings.destination = attributes.destination;
  settings.path_mtu = attributes.path_mtu;
  settings.first_expected = attributes.receive_psn;
  settings.stats = &parts.stats;
  settings.selective = parts.selective;
  settings.max_reads_of_peer = attributes.max_reads_of_peer;
  settings.rnr_timer = attributes.rnr_timer;
  settings.max_window = window_for(parts.receive_buffer, attributes.path_mtu);
  if (!parts.selective) settings.max_window = std::min(settings.max_window, kForeignWindow);
  return settings;
}

}  // namespace

PacketLink::PacketLink(QpType type, const QpAttributes& attributes,
                       std::shared_ptr<const roce::Path> path, const LinkParts& parts)
    : type_(type),
      path_(std::move(path)),
      parts_(parts),
      settings_(settings_of(type, attributes, parts)) {
  if (type == QpType::kUc) {
    receiver_.emplace(settings_, parts_.target);
  } else if (type != QpType::kXrcSend) {
    responder_.emplace(settings_, parts_.target);
  }
}

void PacketLink::begin_sending(const QpAttributes& attributes) {
  settings_.first_sent = attributes.send_psn;
  settings_.max_reads = attributes.max_reads;
  settings_.ack_timeout = transport::ack_timeout(attributes.timeout);
  settings_.retries = attributes.retries;
  settings_.rnr_retries = attributes.rnr_retries;
  if (type_ == QpType::kUc) {
    sender_.emplace(settings_, parts_.sink, parts_.memory);
  } else if (type_ != QpType::kXrcReceive) {
    requester_.emplace(settings_, parts_.sink, parts_.memory);
  }
}

void PacketLink::post(const QpSendRequest& request) {
  // Reads and atomic operations are limited otherwise (max_rd_atomic).
  posted_ += request.work.kind <= work::WorkKind::kWrite ? 1 : kTogether;
  posted_bytes_ += request.work.length;
  requester_ ? requester_->post(request.work, request.refusal) : sender_->post(request.work);
}

void PacketLink::flush() {
  if (requester_) requester_->fail(work::CompletionStatus::kFlushed);
  if (sender_) sender_->fail(work::CompletionStatus::kFlushed);
}

// A marked request concerns the peer's window, a marked answer this end's.
void PacketLink::take_request(const roce::PacketArrival& arrival, Time now) {
  if (receiver_) return receiver_->take(arrival.packet);
  if (!responder_) return;
  if (arrival.marked) parts_.output.send_cnp(*path_, settings_.destination, 0, now);
  responder_->take(arrival.packet, now);
}

void PacketLink::take_response(const roce::PacketArrival& arrival, Time now) {
  if (!requester_) return;
  if (arrival.marked) requester_->marked(now);
  requester_->take(arrival.packet, now);
}

void PacketLink::take_cnp(Time now) {
  if (requester_) requester_->marked(now);
}

bool PacketLink::gathers(Time now) {
  const bool waits = requester_ && posted_ != 0 && posted_ < kTogether &&
                     posted_bytes_ < kBytesTogether && requester_->under_way() >= kStream;
  if (!waits) return false;
  const bool is_long = requester_->under_way() >= kLongStream;
  if (gathers_until_ == Time::max()) gathers_until_ = now + (is_long ? kGathersLong : kGathers);
  return now < gathers_until_;
}

void PacketLink::emit_requests(bool polls, Time now) {
  if (polls && gathers(now)) return;
  posted_ = 0;
  posted_bytes_ = 0;
  gathers_until_ = Time::max();
  for (unsigned sent = 0; sent < kPacketsAtOnce; ++sent) {
    const std::span<std::byte> place = parts_.output.place();
    if (place.empty()) return;
    std::size_t length = 0;
    if (requester_) {
      if (!parts_.output.pending()) parts_.output.expect(requester_->at_hand());
      length = requester_->next(now, place);
    } else if (sender_) {
      length = sender_->next(place);
    }
    if (length == 0) return;
    parts_.output.add(*path_, length);
  }
}

void PacketLink::emit_answers(bool replies, Time now) {
  if (!responder_) return;
  const Time since = responder_->unanswered_since();
  if (since != Time::max() && now - since >= kLazily) responder_->answer_all();
  if (replies) {
    forecast_.posted(now);
  } else if (settings_.ack_timeout >= kPatient && responder_->ready() &&
             forecast_.waits(responder_->only_acknowledges(), now)) {
    return;
  }
  for (unsigned sent = 0; sent < kPacketsAtOnce && responder_->ready(); ++sent) {
    const std::span<std::byte> place = parts_.output.place();
    if (place.empty()) return;
    const std::size_t length = responder_->next(place);
    if (length == 0) return;
    parts_.output.add(*path_, length);
  }
}

Time PacketLink::send_due() const {
  if (gathers_until_ != Time::max()) return gathers_until_;
  if (requester_) return requester_->due();
  return sender_ && sender_->busy() ? Time::min() : Time::max();
}

Time PacketLink::receive_due() const {
  if (!responder_) return Time::max();
  if (forecast_.due() != Time::max()) return forecast_.due();
  if (responder_->ready()) return Time::min();
  const Time since = responder_->unanswered_since();
  return since == Time::max() ? since : since + kLazily;
}

void PacketLink::tick(Time now) {
  if (requester_) requester_->tick(now);
}

bool PacketLink::receive_failed() const {
  return responder_ && responder_->failed() && !responder_->ready();
}

void PacketLink::change(const QpAttributes& attributes) {
  if (responder_) responder_->set_rnr_timer(attributes.rnr_timer);
}

}  // namespace weft::queue
