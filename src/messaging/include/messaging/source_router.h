// SPDX-License-Identifier: BSD-2-Clause
// Which of the connected endpoints of a port does a source send to?
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <unordered_map>

#include "link/inbox.h"
#include "messaging/endpoint_port.h"
#include "os/clock.h"

namespace weft::messaging {

class ConnectedPeer;

// The sink of the inbox of a port that several connected endpoints share. A source belongs to the
// endpoint that has accepted it (ConnectedPeer::accept_source()), whose receiver hears all of it.
// Until then it may send control messages only, each with a number that an endpoint expects; a
// source that sends anything else, or is not accepted in time, is refused. Used with the port's
// lock held.
class SourceRouter final : public link::InboxSink {
 public:
  // The number that a control message names its receiver by, or 0. The message has not been
  // checked.
  using NumberIn = std::uint64_t (*)(std::span<const std::byte> message);

  // Both outlive it.
  SourceRouter(EndpointPort& port, NumberIn number_in) : port_(port), number_in_(number_in) {}

  // Control messages with that number, which is not 0, are for `peer` from now on.
  void expect(std::uint64_t number, ConnectedPeer& peer) { expected_[number] = &peer; }
  // Or for no endpoint any more.
  void forget(std::uint64_t number) { expected_.erase(number); }
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
  void arrived(const link::Arrival& arrival) override;
  void accessed(std::uint32_t source, Access access, std::span<const RegionKey> regions) override;
  void received(void* cookie, int error) override;
  void withdrawn(const link::Offer& offer) override;
  link::InboxSink* receiver_of(std::uint32_t source) const;
  ConnectedPeer* addressee_of(const link::Arrival& arrival) const;

  EndpointPort& port_;
  const NumberIn number_in_;
  std::unordered_map<std::uint64_t, ConnectedPeer*> expected_;
  std::deque<Newcomer> newcomers_;  // in the order of their deadlines
};

}  // namespace weft::messaging
