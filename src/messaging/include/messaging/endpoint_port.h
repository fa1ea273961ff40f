// SPDX-License-Identifier: BSD-2-Clause
// Where do the messages of an endpoint arrive?
#pragma once

#include <memory>
#include <vector>

#include "device/port.h"
#include "link/inbox.h"
#include "messaging/matcher.h"
#include "os/socket_address.h"

namespace weft::messaging {

// A port of one or of several endpoints, with what they know of its senders. Used with the lock of
// its SharedPort held.
struct EndpointPort {
  std::unique_ptr<device::Port> port;
  os::SocketAddress name;           // by which peers know it
  link::InboxSink* sink = nullptr;  // of its inbox: that of its one endpoint, or a SourceRouter
  std::vector<std::shared_ptr<RemoteSender>> senders;  // by the inbox's number; null: none
  bool closing = false;                                // takes nothing in

  link::Inbox& inbox() const { return port->inbox(); }
  // Takes a message in nothing but polls: what has arrived, as far as there is room.
  void poll() const {
    if (!closing) [[likely]]
      port->inbox().poll(*sink);
  }
  // Listens to a source no more.
  void refuse(std::uint32_t source) const { port->inbox().refuse(*sink, source); }
  // As device::Port::take_control().
  void take_control(const link::Arrival& arrival) const {
    port->take_control(*sink, arrival, senders[arrival.source]->address);
  }
  // A source that begins: nothing of it is let in but control messages until an endpoint does.
  RemoteSender& open_sender(std::uint32_t source, const os::SocketAddress& address) {
    if (senders.size() <= source) senders.resize(source + 1);
    senders[source] = std::make_shared<RemoteSender>();
    senders[source]->address = address;
    senders[source]->accepted = false;
    return *senders[source];
  }
};

}  // namespace weft::messaging
