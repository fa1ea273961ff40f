// SPDX-License-Identifier: BSD-2-Clause
// Is a datagram a packet that a station of this host may look at?
#pragma once

#include "base/stats.h"
#include "os/udp_batch.h"
#include "wire/icrc.h"
#include "wire/packet.h"
#include "wire/tap.h"

namespace weft::roce {

// Takes datagrams apart whose ICRC is right and which belong to the default partition. One thread
// at a time.
class PacketCheck {
 public:
  // `capture`, if not null, hears of all others, too.
  explicit PacketCheck(wire::Tap* capture) : capture_(capture) {}

  // Counts it and returns false when it is anything else.
  bool read(const os::Datagram& datagram, wire::Packet& packet, Stats& stats) {
    return read(datagram, false, packet, stats);
  }
  // The same for one of a foreign peer, whose IPv4 header may have any identification.
  bool read_foreign(const os::Datagram& datagram, wire::Packet& packet, Stats& stats) {
    return read(datagram, true, packet, stats);
  }

 private:
  bool read(const os::Datagram& datagram, bool foreign, wire::Packet& packet, Stats& stats);

  wire::Tap* const capture_;
  // Those of the last datagram: the next often has the same.
  os::SocketAddress from_;
  os::SocketAddress to_;
  wire::RouteCrc crc_;
};

}  // namespace weft::roce
