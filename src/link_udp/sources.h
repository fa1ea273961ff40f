// SPDX-License-Identifier: BSD-2-Clause
// Which peers have sent datagrams to an endpoint, and which are forgotten when there are too many?
#pragma once

#include <cstddef>
#include <cstdint>
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
  bool listened_to(std::uint32_t number) const { return !at(number).refused; }
  // True while there is no source.
  bool empty() const { return indices_.empty(); }
  // Drops its datagrams while it is remembered; false when that was so, or there is no such source.
  bool refuse(std::uint32_t number);

 private:
  // One source, between those heard of before and after it.
  struct Entry {
    os::SocketAddress address;
    std::size_t older = 0;
    std::size_t newer = 0;
    bool refused = false;
  };

  const Entry& at(std::uint32_t number) const { return entries_[number - first_ + 1]; }
  void take_out(std::size_t index);
  void put_last(std::size_t index);
  std::size_t add(const os::SocketAddress& address, link::InboxSink& sink);

  const std::uint32_t first_;
  const std::size_t most_;
  std::vector<Entry> entries_{1};  // the first one stands between the newest and the oldest
  std::unordered_map<os::SocketAddress, std::size_t, roce::AddressHash> indices_;
};

}  // namespace weft::udp
