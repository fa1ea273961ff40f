// SPDX-License-Identifier: BSD-2-Clause
// What arrives at an endpoint that peers reach without packets?
#include "recorded_inbox.h"

#include <algorithm>
#include <utility>

namespace weft::capture {

Recorder::Peer* RecordedInbox::peer(std::uint32_t source) {
  const auto found = sources_.find(source);
  if (found == sources_.end() || !found->second->wanted()) return nullptr;
  return found->second;
}

void RecordedInbox::source_opened(std::uint32_t source, const os::SocketAddress& address) {
  if (source < first_remote_) sources_[source] = &recorder_.peer_at(address);
  sink_->source_opened(source, address);
}

void RecordedInbox::source_closed(std::uint32_t source, bool died) {
  if (Recorder::Peer* from = peer(source)) from->part(false);
  sources_.erase(source);
  sink_->source_closed(source, died);
}

void RecordedInbox::arrived(const link::Arrival& arrival) {
  if (Recorder::Peer* from = peer(arrival.source)) record(arrival, *from);
  sink_->arrived(arrival);
}

// An access by a peer is in its own capture; here is what announces it, if anything was said.
void RecordedInbox::record(const link::Arrival& arrival, Recorder::Peer& from) {
  const LocalRange bytes{const_cast<std::byte*>(arrival.payload),
                         arrival.payload != nullptr ? arrival.length : 0};
  rdm::MessageHeader header;
  header.operation = arrival.operation;
  header.has_data = arrival.has_data;
  header.wants_ack = arrival.wants_ack || arrival.payload == nullptr;
  header.exchange = header.wants_ack ? arrival.offer.exchange & rdm::kNumberBits : 0;
  header.tag = arrival.tag;
  header.data = arrival.data;
  header.length = arrival.length;
  switch (arrival.operation) {
    case link::Operation::kDatagram: {
      const auto group = recorder_.groups_.find(arrival.tag);
      if (group == recorder_.groups_.end()) {
        return from.datagram(false, {&bytes, 1}, arrival.has_data, arrival.data);
      }
      return from.group_datagram(group->second, {&bytes, 1}, arrival.has_data, arrival.data);
    }
    case link::Operation::kWriteData:
    case link::Operation::kAtomicWriteData:
    case link::Operation::kAtomicReadData:
      header.kind = rdm::MessageKind::kWriteImmInfo;
      header.length = arrival.tag;
      header.wants_ack = false;
      header.tag = header.exchange = 0;
      return from.theirs().message(header);
    case link::Operation::kWriteEvent:
    case link::Operation::kReadEvent:
      return;
    case link::Operation::kMessage:
    case link::Operation::kTagged:
    case link::Operation::kControl:
      header.kind = arrival.payload != nullptr ? rdm::MessageKind::kEager : rdm::MessageKind::kRts;
      return from.theirs().message(header, {&bytes, 1});
  }
}

void RecordedInbox::received(void* cookie, int error) {
  const auto& pull = *static_cast<const Pull*>(cookie);
  if (Recorder::Peer* from = peer(pull.offer.source); from != nullptr && error == 0) {
    const std::uint32_t exchange = pull.offer.exchange & rdm::kNumberBits;
    from->mine().want(exchange, pull.length);
    from->theirs().deliver(exchange, {pull.pieces.data(), pull.count}, pull.length);
  }
  void* const before = pull.cookie;
  pulls_.erase(pull.self);
  sink_->received(before, error);
}

void RecordedInbox::withdrawn(const link::Offer& offer) {
  if (Recorder::Peer* from = peer(offer.source)) {
    rdm::MessageHeader header;
    header.kind = rdm::MessageKind::kWithdrawn;
    header.exchange = offer.exchange & rdm::kNumberBits;
    from->theirs().message(header);
  }
  sink_->withdrawn(offer);
}

void RecordedInbox::taken(const link::Offer& offer, Recorder::Peer& from) {
  rdm::MessageHeader header;
  header.kind = rdm::MessageKind::kTaken;
  header.exchange = offer.exchange & rdm::kNumberBits;
  from.mine().message(header);
}

unsigned RecordedInbox::poll(link::InboxSink& sink) {
  link::InboxSink* const before = std::exchange(sink_, &sink);
  const unsigned count = inbox_.poll(*this);
  sink_ = before;
  return count;
}

bool RecordedInbox::accept(link::InboxSink& sink, const link::Offer& offer,
                           std::span<const LocalRange> pieces, std::uint64_t length, void* cookie) {
  Pull& pull = pulls_.emplace_back();
  pull.self = std::prev(pulls_.end());
  pull.cookie = cookie;
  pull.offer = offer;
  pull.length = length;
  pull.count = pieces.size();
  std::copy(pieces.begin(), pieces.end(), pull.pieces.begin());
  link::InboxSink* const before = std::exchange(sink_, &sink);
  const bool accepted = inbox_.accept(*this, offer, pieces, length, &pull);
  sink_ = before;
  if (!accepted) pulls_.erase(pull.self);
  return accepted;
}

void RecordedInbox::acknowledge(const link::Offer& offer) {
  inbox_.acknowledge(offer);
  if (Recorder::Peer* from = peer(offer.source)) taken(offer, *from);
}

void RecordedInbox::refuse(link::InboxSink& sink, std::uint32_t source) {
  link::InboxSink* const before = std::exchange(sink_, &sink);
  inbox_.refuse(*this, source);
  sink_ = before;
}

void RecordedInbox::check_sources(link::InboxSink& sink) {
  link::InboxSink* const before = std::exchange(sink_, &sink);
  inbox_.check_sources(*this);
  sink_ = before;
}

}  // namespace weft::capture
