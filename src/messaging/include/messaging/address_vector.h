// SPDX-License-Identifier: BSD-2-Clause
// Which number stands for which address?
#pragma once

#include <atomic>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "os/optional_lock.h"
#include "os/socket_address.h"

namespace weft::messaging {

// The number of a peer in an address vector (fi_addr_t).
using PeerIndex = std::uint64_t;
inline constexpr PeerIndex kNoPeer = ~PeerIndex{0};

// An address vector (fi_av(3)): numbers are indexes, the lowest free one first. Any thread, under
// every threading model: calls that change it are control calls.
class AddressVector {
 public:
  explicit AddressVector(std::size_t expected);

  // Adds an address and returns its number. The same address may be added again: it gets another
  // number, and messages from it are reported under the lowest.
  PeerIndex insert(const os::SocketAddress& address);
  // Takes a number back; false when it is not in use.
  bool remove(PeerIndex index);

  // The address of a number, and a stamp that no other use of that number ever has.
  struct AddressEntry {
    os::SocketAddress address;
    std::uint64_t stamp = 0;  // 0: not in use
    PeerIndex lowest = 0;     // of the numbers of this address
  };
  std::optional<AddressEntry> find(PeerIndex index) const;
  // The lowest number of an address, or kNoPeer.
  PeerIndex lookup(const os::SocketAddress& address) const;
  // The lowest number of the same address as `index`, or kNoPeer when it is not in use. Cheap: each
  // receive from a certain peer asks.
  PeerIndex canonical(PeerIndex index) const;

  // Changes whenever an entry does; cheap.
  std::uint64_t version() const { return version_.load(std::memory_order_acquire); }

 private:
  bool in_use(PeerIndex index) const {
    return index < entries_.size() && entries_[index].stamp != 0;
  }
  void set_lowest(const std::string& address);

  mutable SpinLock lock_{true};
  std::vector<AddressEntry> entries_;
  std::vector<PeerIndex> free_;  // a heap, lowest first
  std::unordered_multimap<std::string, PeerIndex> by_address_;
  std::uint64_t next_stamp_ = 1;
  std::atomic<std::uint64_t> version_{1};
};

}  // namespace weft::messaging
