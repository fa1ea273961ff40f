// SPDX-License-Identifier: BSD-2-Clause
// To which process of this host does a message for queue pair 1 at port 4791 go?
//
// Foreign peers send all messages of connection management there (IBTA 12.6 to 12.11). No directory
// is needed: each says the UDP port of its process, a request by its service id, every other
// message by the communication id that Weft has assigned, `port << 16 | number`.
#pragma once

#include <cstdint>
#include <optional>

#include "wire/cm_message.h"
#include "wire/packet.h"

namespace weft::roce {

// The message that a packet for queue pair 1 carries; nothing unless it is a MAD of connection
// management in a UD SEND Only of the default partition and with the Q_Key of queue pair 1. Private
// data may follow it.
std::optional<wire::CmMad> read_mad(const wire::Packet& packet);

// Whether that is a REQ for a service of Weft's own. Its sender takes answers at the UDP port that
// it has sent from, which for all other messages says nothing.
bool is_request_of_weft(const wire::CmMad& mad);

// The UDP port at which a service is listened for; nothing for a service id that names no port.
// This is the only place that knows which service ids do.
std::optional<std::uint16_t> port_of_service(std::uint64_t service);

// The UDP port of the process that assigned a communication id, or the id of a SIDR_REQ.
constexpr std::uint16_t port_of_id(std::uint32_t id) {
  return static_cast<std::uint16_t>(id >> 16);
}

// The UDP port of the process that a message is for; nothing when its service names no port.
std::optional<std::uint16_t> destination_port(const wire::CmMessage& message);

// What the sender of a message is told for which there is no process: of a REQ that its service has
// no listener (REJ 8), of a SIDR_REQ likewise (status 1), of a DREQ that the connection has ended
// (DREP), as Linux does. Nothing for other messages.
std::optional<wire::CmMad> refusal_of(const wire::CmMad& mad);

}  // namespace weft::roce
