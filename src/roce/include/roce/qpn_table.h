// SPDX-License-Identifier: BSD-2-Clause
// Which QPNs does a UDP port have, and which handler owns each?
#pragma once

#include <chrono>
#include <cstdint>
#include <vector>

#include "base/result.h"
#include "os/clock.h"
#include "roce/packet_handler.h"
#include "wire/cm_message.h"
#include "wire/packet.h"

namespace weft::roce {

// What a handler needs a number for.
enum class QpnUse : std::uint8_t {
  kManager,    // of connections: the general services interface, QPN 1 of every port
  kGroups,     // multicast groups: wire::kMulticastQpn of every port
  kEndpoint,   // the libfabric endpoint that IP address and UDP port name
  kQueuePair,  // a queue pair, or a connected endpoint
};

// The QPNs of one UDP port, `port << 8 | index`. Index 0 stands for the connection manager, so that
// it is never given; 1 is the endpoint's, 2 to 255 are for queue pairs. 255 of port 65535 would be
// wire::kMulticastQpn, so that it is never given either. One thread at a time.
class QpnTable {
 public:
  // The numbers of queue pairs of a port.
  static constexpr std::uint32_t kQueuePairs = 254;
  // A queue pair's number rests for so long before it is given again: packets for the former owner
  // may be under way. That is far longer than packets take within a data center.
  static constexpr std::chrono::milliseconds kRest{100};

  explicit QpnTable(std::uint16_t port) : port_(port) {}

  // Gives that handler a number: of queue pairs the one after the last that was given, if it is
  // free, so that numbers return late. Errors: EADDRINUSE when another handler has the only number
  // for that use, ENOBUFS when all of queue pairs are in use or rest.
  Result<std::uint32_t> take(PacketHandler& handler, QpnUse use, os::Time now);
  // Takes a number back; nothing for one that was not given.
  void give_back(std::uint32_t qpn, os::Time now);

  // The owner of that number; null: there is none.
  PacketHandler* owner(std::uint32_t qpn) const {
    const std::uint32_t place = place_of(qpn);
    return place < numbers_.size() ? numbers_[place].owner : nullptr;
  }
  // All owners, each once, and whether that handler is one of them.
  std::vector<PacketHandler*> owners() const;
  bool owns_any(const PacketHandler& handler) const;

 private:
  struct Number {
    PacketHandler* owner = nullptr;
    os::Time free_from{};
  };

  // The place of a number in numbers_, if it has one: first those that every port has.
  std::uint32_t place_of(std::uint32_t qpn) const {
    if (qpn == wire::kCmQpn) return 0;
    if (qpn == wire::kMulticastQpn) return 1;
    const std::uint32_t index = qpn & 0xFF;
    return qpn >> 8 == port_ && index != 0 ? index + 1 : kNoIndex;
  }
  Result<std::uint32_t> take_next(PacketHandler& handler, os::Time now);

  static constexpr std::uint32_t kNoIndex = ~0U;
  const std::uint32_t port_;
  std::vector<Number> numbers_{3};  // and more when a queue pair's number was given
  std::uint32_t turn_ = 0;          // of the queue pairs' numbers
};

}  // namespace weft::roce
