// SPDX-License-Identifier: BSD-2-Clause
// Which of the connected endpoints of a port does a source send to?
#include "messaging/source_router.h"

#include <array>
#include <cstring>

#include "messaging/connected_peer.h"
#include "messaging/message_receiver.h"

namespace weft::messaging {
namespace {

// A peer sends the message by which it is accepted as soon as it has opened the flow. One that was
// stopped in between for so long is refused.
constexpr auto kTimeToBeAccepted = std::chrono::seconds(10);
// Control messages of such a source in one poll.
constexpr unsigned kControlMessages = 4;

}  // namespace

link::InboxSink* SourceRouter::receiver_of(std::uint32_t source) const {
  return port_.senders[source]->receiver;
}

void SourceRouter::source_opened(std::uint32_t source, const os::SocketAddress& address) {
  port_.open_sender(source, address);
  newcomers_.push_back({source, port_.senders[source], os::coarse_now() + kTimeToBeAccepted});
}

void SourceRouter::source_closed(std::uint32_t source, bool died) {
  if (link::InboxSink* receiver = receiver_of(source)) return receiver->source_closed(source, died);
  port_.senders[source].reset();
}

unsigned SourceRouter::room_for(std::uint32_t source) const {
  const link::InboxSink* const receiver = receiver_of(source);
  return receiver != nullptr ? receiver->room() : kControlMessages;
}

void SourceRouter::arrived(const link::Arrival& arrival) {
  if (link::InboxSink* receiver = receiver_of(arrival.source)) return receiver->arrived(arrival);
  ConnectedPeer* const peer = addressee_of(arrival);
  if (peer == nullptr) return port_.refuse(arrival.source);
  peer->hear(arrival);
}

// The sender may write on: the endpoint checks its own copy.
ConnectedPeer* SourceRouter::addressee_of(const link::Arrival& arrival) const {
  const bool control = arrival.operation == link::MessageOperation::kControl;
  if (!control || arrival.payload == nullptr || arrival.length > kMaxControlBytes) return nullptr;
  std::array<std::byte, kMaxControlBytes> copy;
  std::memcpy(copy.data(), arrival.payload, arrival.length);
  const auto found = expected_.find(number_in_({copy.data(), arrival.length}));
  return found != expected_.end() ? found->second : nullptr;
}

void SourceRouter::accessed(std::uint32_t source, Access access,
                            std::span<const RegionKey> regions) {
  if (link::InboxSink* receiver = receiver_of(source)) receiver->accessed(source, access, regions);
}

void SourceRouter::received(void* cookie, int error) {
  link::InboxSink& receiver = *static_cast<Receive*>(cookie)->receiver;
  receiver.received(cookie, error);
}

void SourceRouter::withdrawn(const link::Offer& offer) {
  if (link::InboxSink* receiver = receiver_of(offer.source)) receiver->withdrawn(offer);
}

void SourceRouter::check(os::Time now) {
  while (!newcomers_.empty() && newcomers_.front().deadline <= now) {
    const auto sender = newcomers_.front().sender.lock();
    const std::uint32_t source = newcomers_.front().source;
    newcomers_.pop_front();
    if (sender == nullptr || port_.senders[source] != sender) continue;
    if (sender->receiver == nullptr) port_.refuse(source);
  }
}

}  // namespace weft::messaging
