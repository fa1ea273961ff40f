// SPDX-License-Identifier: BSD-2-Clause
// Which peers have sent datagrams to an endpoint, and which are forgotten when there are too many?
#pragma once

#include <cstddef>
#include <cstdint>
#include <list>
#include <unordered_map>
#include <vector>

#include "link/inbox.h"
#include "os/socket_address.h"
#include "roce/address_hash.h"

namespace weft::udp {

// Numbers the addresses that datagrams come from. Anybody can send from any number of addresses, so
// there is an end to it: then the one unheard of for longest gives its number to the next. One
// thread at a time.
class Sources {
 public:
  // Numbers `first` and those after it, `most` at least 1.
  Sources(std::uint32_t first, std::size_t most);

  // Returns the number of that address, which has just been heard of. The sink is told when it is
  // new, and before whose number it takes over.
  std::uint32_t number_of(const os::SocketAddress& address, link::InboxSink& sink);
  // Whether datagrams of the source of that number, which number_of() returned, are delivered.
  bool listened_to(std::uint32_t number) const { return !numbers_[number - first_]->refused; }
  // True while there is no source.
  bool empty() const { return numbers_.empty(); }
  // Drops its datagrams while it is remembered; false when that was so, or there is no such source.
  bool refuse(std::uint32_t number);

 private:
  struct Entry {
    std::uint32_t number;
    os::SocketAddress address;
    bool refused = false;
  };
  using Position = std::list<Entry>::iterator;

  Position add(const os::SocketAddress& address, link::InboxSink& sink);

  const std::uint32_t first_;
  const std::size_t most_;
  std::list<Entry> by_age_;        // the one unheard of for longest is the first
  std::vector<Position> numbers_;  // from first_ on
  std::unordered_map<os::SocketAddress, Position, roce::AddressHash> addresses_;
};

}  // namespace weft::udp
