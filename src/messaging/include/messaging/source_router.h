// SPDX-License-Identifier: BSD-2-Clause
// Which of the connected endpoints of a port does a source send to?
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <span>

#include "link/inbox.h"
#include "messaging/endpoint_port.h"
#include "os/clock.h"

namespace weft::messaging {

// The sink of the inbox of a port of connected endpoints. A source belongs to the endpoint of its
// connection, whose receiver hears all of it (MessageReceiver::bind()). Until then it may send
// control messages only; a source that sends anything else, or is not accepted in time, is refused.
// Used with the port's lock held.
class SourceRouter final : public link::InboxSink {
 public:
  // The port outlives it.
  explicit SourceRouter(EndpointPort& port) : port_(port) {}

  // Refuses sources that were not accepted in time.
  void check(os::Time now);

 private:
  // A source that no endpoint has accepted when it was last looked at.
  struct Newcomer {
    std::uint32_t source;
    std::weak_ptr<RemoteSender> sender;
    os::Time deadline;
  };

  void source_opened(std::uint32_t source, const os::SocketAddress& address) override;
  void source_closed(std::uint32_t source, bool died) override;
  unsigned room_for(std::uint32_t source) const override;
  bool takes_more_urgently(std::uint32_t source) const override;
  bool arriving(const link::Arrival& arrival) override;
  void arrived(const link::Arrival& arrival) override;
  void accessed(std::uint32_t source, Access access, std::span<const RegionKey> regions) override;
  void refused(std::uint32_t source, const char* operation, const RefusedAccess& access) override;
  void received(void* cookie, int error) override;
  void withdrawn(const link::Offer& offer) override;
  link::InboxSink* receiver_of(std::uint32_t source) const;

  EndpointPort& port_;
  std::deque<Newcomer> newcomers_;  // in the order of their deadlines
};

}  // namespace weft::messaging
