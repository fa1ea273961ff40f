// SPDX-License-Identifier: BSD-2-Clause
// What arrives at an endpoint that peers reach without packets?
#include "recorded_inbox.h"

#include <algorithm>

namespace weft::capture {

RecordedPeer* RecordedInbox::peer(std::uint32_t source) {
  const auto found = sources_.find(source);
  return found != sources_.end() && peers_.wanted() ? found->second : nullptr;
}

std::optional<link::Offer> RecordedInbox::take_offer(const link::Offer& offer) {
  const auto node = offers_.extract({offer.source, offer.exchange});
  return node.empty() ? std::nullopt : std::optional(node.mapped());
}

void RecordedInbox::source_opened(std::uint32_t source, const os::SocketAddress& address) {
  sources_[source] = &peers_.at(address);
  sink_->source_opened(source, address);
}

void RecordedInbox::source_closed(std::uint32_t source, bool died) {
  if (RecordedPeer* from = peer(source)) from->theirs.end();
  offers_.erase(offers_.lower_bound({source, 0}), offers_.lower_bound({source + 1, 0}));
  sources_.erase(source);
  sink_->source_closed(source, died);
}

void RecordedInbox::arrived(const link::Arrival& arrival) {
  if (RecordedPeer* from = peer(arrival.source)) record(arrival, *from);
  sink_->arrived(arrival);
}

// An access by a peer is in its own capture; here is what announces it, if anything was said.
void RecordedInbox::record(const link::Arrival& arrival, RecordedPeer& from) {
  switch (arrival.operation) {
    case link::MessageOperation::kDatagram: {
      const os::SocketAddress* const group = peers_.group(arrival.tag);
      const LocalRange bytes{const_cast<std::byte*>(arrival.payload), arrival.length};
      return from.end.write_datagram(group != nullptr ? *group : from.own_path.source, {&bytes, 1},
                                     arrival.has_data, arrival.data);
    }
    case link::MessageOperation::kControl: {
      if (arrival.payload == nullptr) return;
      const LocalRange bytes{const_cast<std::byte*>(arrival.payload), arrival.length};
      return from.end.write_connection_message(from.own_path.source, bytes);
    }
    case link::MessageOperation::kWriteData:
    case link::MessageOperation::kAtomicWriteData:
    case link::MessageOperation::kAtomicReadData:
      return record_notice(arrival, from);
    case link::MessageOperation::kWriteEvent:
    case link::MessageOperation::kReadEvent:
      return;
    case link::MessageOperation::kMessage:
    case link::MessageOperation::kTagged:
      return record_message(arrival, from);
  }
}

// Which bytes were written where is not known here: a write of none carries the data.
void RecordedInbox::record_notice(const link::Arrival& arrival, RecordedPeer& from) {
  const RemoteRange none{};
  link::AccessRequest request;
  request.write = request.has_data = true;
  request.data = arrival.data;
  request.remote = {&none, 1};
  request.length = arrival.tag;
  from.theirs.access(request, {}, {});
}

// The bytes of an offered message are not here yet.
void RecordedInbox::record_message(const link::Arrival& arrival, RecordedPeer& from) {
  const bool offered = arrival.payload == nullptr;
  const LocalRange bytes{const_cast<std::byte*>(arrival.payload), arrival.length};
  link::SendRequest request;
  request.operation = arrival.operation;
  request.has_data = arrival.has_data;
  request.until_delivered = arrival.wants_ack;
  request.must_copy = !offered;
  request.tag = arrival.tag;
  request.data = arrival.data;
  if (!offered) request.pieces = {&bytes, 1};
  request.length = arrival.length;
  if (!offered && !arrival.wants_ack) {
    from.theirs.send(request);
    return;
  }
  link::Offer& known = offers_[{arrival.offer.source, arrival.offer.exchange}];
  request.cookie = &known;
  known = from.theirs.send(request).offer;
}

void RecordedInbox::received(void* cookie, int error) {
  if (const auto node = pulls_.extract(cookie); !node.empty()) {
    const Pull& pull = node.mapped();
    RecordedPeer* const from = peer(pull.offer.source);
    const auto offer = take_offer(pull.offer);
    if (offer && from != nullptr && error == 0) {
      from->theirs.accept(*offer, pull.length, {pull.pieces.data(), pull.count});
    }
  }
  sink_->received(cookie, error);
}

void RecordedInbox::withdrawn(const link::Offer& offer) {
  const auto known = offers_.find({offer.source, offer.exchange});
  if (known != offers_.end()) {
    if (RecordedPeer* from = peer(offer.source)) from->theirs.cancel(&known->second);
    offers_.erase(known);
  }
  sink_->withdrawn(offer);
}

unsigned RecordedInbox::poll(link::InboxSink& sink) {
  sink_ = &sink;
  return inbox_.poll(*this);
}

bool RecordedInbox::accept(link::InboxSink& sink, const link::Offer& offer,
                           std::span<const LocalRange> pieces, std::uint64_t length, void* cookie) {
  sink_ = &sink;
  Pull pull{offer, length, pieces.size(), {}};
  std::ranges::copy(pieces, pull.pieces.begin());
  pulls_.insert_or_assign(cookie, pull);
  const bool accepted = inbox_.accept(*this, offer, pieces, length, cookie);
  if (!accepted) pulls_.erase(cookie);
  return accepted;
}

void RecordedInbox::acknowledge(const link::Offer& offer) {
  inbox_.acknowledge(offer);
  RecordedPeer* const from = peer(offer.source);
  if (const auto known = take_offer(offer); known && from != nullptr) {
    from->theirs.acknowledge(*known);
  }
}

void RecordedInbox::refuse(link::InboxSink& sink, std::uint32_t source) {
  sink_ = &sink;
  inbox_.refuse(*this, source);
}

void RecordedInbox::check_sources(link::InboxSink& sink) {
  sink_ = &sink;
  inbox_.check_sources(*this);
}

}  // namespace weft::capture
