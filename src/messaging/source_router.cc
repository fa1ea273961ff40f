// SPDX-License-Identifier: BSD-2-Clause
// Which of the connected endpoints of a port does a source send to?
#include "messaging/source_router.h"

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

// The receiver first: all that the source has sent comes before the end of its connection.
void SourceRouter::source_closed(std::uint32_t source, bool died) {
  if (link::InboxSink* receiver = receiver_of(source)) receiver->source_closed(source, died);
  port_.senders[source].reset();
  port_.port->end_connection_of(source);
}

unsigned SourceRouter::room_for(std::uint32_t source) const {
  const link::InboxSink* const receiver = receiver_of(source);
  return receiver != nullptr ? receiver->room() : kControlMessages;
}

bool SourceRouter::takes_more_urgently(std::uint32_t source) const {
  const link::InboxSink* const receiver = receiver_of(source);
  return receiver == nullptr || receiver->takes_more_urgently(source);
}

bool SourceRouter::arriving(const link::Arrival& arrival) {
  link::InboxSink* const receiver = receiver_of(arrival.source);
  return receiver != nullptr && receiver->arriving(arrival);
}

void SourceRouter::arrived(const link::Arrival& arrival) {
  if (link::InboxSink* receiver = receiver_of(arrival.source)) return receiver->arrived(arrival);
  if (arrival.operation == link::MessageOperation::kControl) return port_.take_control(arrival);
  port_.refuse(arrival.source);
}

void SourceRouter::accessed(std::uint32_t source, Access access,
                            std::span<const RegionKey> regions) {
  if (link::InboxSink* receiver = receiver_of(source)) receiver->accessed(source, access, regions);
}

void SourceRouter::refused(std::uint32_t source, const char* operation,
                           const RefusedAccess& access) {
  if (port_.senders[source] == nullptr) return;
  if (link::InboxSink* receiver = receiver_of(source)) receiver->refused(source, operation, access);
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
