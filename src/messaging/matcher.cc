// SPDX-License-Identifier: BSD-2-Clause
// Which receive takes which message?
#include "messaging/matcher.h"

#include <algorithm>
#include <cstring>

namespace weft::messaging {

// The search when the first one does not want it.
Receive* Matcher::match_behind(std::uint64_t tag, PeerIndex sender) {
  for (Receive& receive : posted_) {
    if (!Wanted{receive.tag, receive.ignore, receive.source}.takes(tag, sender)) continue;
    if (!receive.multi) withdraw(receive);
    return &receive;
  }
  return nullptr;
}

void Matcher::put_back(Receive& receive) {
  const auto behind = std::find_if(posted_.begin(), posted_.end(), [&](const Receive& other) {
    return other.order > receive.order;
  });
  posted_.insert(behind, receive);
  ++waiting_;
}

Receive* Matcher::cancel(void* context) {
  for (Receive& receive : posted_) {
    if (receive.context != context) continue;
    withdraw(receive);
    return &receive;
  }
  return nullptr;
}

Receive* Matcher::take_directed(PeerIndex source) {
  for (Receive& receive : posted_) {
    if (receive.source != source) continue;
    withdraw(receive);
    return &receive;
  }
  return nullptr;
}

std::size_t Matcher::cost_of(const link::Arrival& arrival) {
  constexpr std::size_t kHeapBlock = 32;  // of glibc's malloc: the smallest, and what is added
  constexpr std::size_t kRecords =
      sizeof(QueuedUnexpected) + sizeof(void*) + sizeof(RemoteSender) + kHeapBlock;
  const bool has_payload = arrival.payload != nullptr && arrival.length != 0;
  return kRecords + (has_payload ? arrival.length + kHeapBlock : 0) +
         (arrival.wants_ack ? link::kAnswerCost : 0);
}

void Matcher::keep(const link::Arrival& arrival, std::shared_ptr<RemoteSender> from) {
  QueuedUnexpected& message = unexpected_.take();
  message.arrival = arrival;
  message.from = std::move(from);
  message.claimed = false;
  message.withdrawn = false;
  message.cost = cost_of(arrival);
  bytes_kept_ += message.cost;
  message.bytes.reset();
  if (arrival.payload != nullptr && arrival.length != 0) {
    message.bytes.reset(new std::byte[arrival.length]);
    std::memcpy(message.bytes.get(), arrival.payload, arrival.length);
    message.arrival.payload = message.bytes.get();
  }
  kept_.push_back(message);
}

QueuedUnexpected* Matcher::find(const Wanted& wanted) {
  for (QueuedUnexpected& message : kept_) {
    if (message.claimed) continue;
    const PeerIndex sender = number_of(*message.from);
    if (wanted.takes(message.arrival.tag, sender)) return &message;
  }
  return nullptr;
}

QueuedUnexpected* Matcher::find_claimed(void* context) {
  for (QueuedUnexpected& message : kept_) {
    if (message.claimed && message.claimed_by == context) return &message;
  }
  return nullptr;
}

Unexpected Matcher::take(QueuedUnexpected& message) {
  bytes_kept_ -= message.cost;
  kept_.erase(kept_.iterator_to(message));
  Unexpected taken = std::move(static_cast<Unexpected&>(message));
  unexpected_.give(message);
  return taken;
}

void Matcher::forget(const RemoteSender& gone) {
  for (auto entry = kept_.begin(); entry != kept_.end();) {
    QueuedUnexpected& message = *entry++;
    if (message.from.get() != &gone) continue;
    message.arrival.wants_ack = false;
    if (message.arrival.payload == nullptr) take(message);
  }
}

void Matcher::forget(const RemoteSender& sender, std::uint32_t rendezvous_id) {
  const auto offer = std::find_if(kept_.begin(), kept_.end(), [&](const QueuedUnexpected& message) {
    return message.from.get() == &sender && message.arrival.payload == nullptr &&
           message.arrival.offer.rendezvous_id == rendezvous_id;
  });
  if (offer == kept_.end()) return;
  offer->withdrawn = true;
  if (!offer->claimed) take(*offer);
}

void Matcher::drop_all_to(const MessageReceiver& receiver) {
  for (auto entry = kept_.begin(); entry != kept_.end();) {
    QueuedUnexpected& message = *entry++;
    if (message.from->receiver == &receiver) take(message);
  }
}

}  // namespace weft::messaging
