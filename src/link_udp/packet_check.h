// SPDX-License-Identifier: BSD-2-Clause
// Is a datagram a packet that a station of this host may look at?
#pragma once

#include "link_udp/station.h"
#include "os/udp_batch.h"
#include "wire/packet.h"
#include "wire/tap.h"

namespace weft::udp {

// Takes a datagram apart whose ICRC is right and which belongs to the default partition. Counts it
// and returns false when it is anything else. `capture`, if not null, hears of either.
bool read_packet(const os::Datagram& datagram, wire::Packet& packet, Drops& drops,
                 wire::Tap* capture);
// The same for one of a foreign peer, whose IPv4 header may have any identification.
bool read_foreign_packet(const os::Datagram& datagram, wire::Packet& packet, Drops& drops,
                         wire::Tap* capture);

}  // namespace weft::udp
