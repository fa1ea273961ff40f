// SPDX-License-Identifier: BSD-2-Clause
// Where do the messages of an endpoint arrive?
#include "messaging/endpoint_port.h"

#include <array>
#include <cstring>

namespace weft::messaging {

// The sender may write on: a copy is checked.
void EndpointPort::take_control(const link::Arrival& arrival) const {
  if (arrival.payload == nullptr || arrival.length > kMaxControlBytes)
    return refuse(arrival.source);
  if (arrival.wants_ack) inbox().acknowledge(arrival.offer);
  std::array<std::byte, kMaxControlBytes> copy;
  std::memcpy(copy.data(), arrival.payload, arrival.length);
  const os::SocketAddress& address = senders[arrival.source]->address;
  if (!port->take_control(arrival.source, address, {copy.data(), arrival.length}))
    refuse(arrival.source);
}

}  // namespace weft::messaging
