// SPDX-License-Identifier: BSD-2-Clause
// Which number stands for which address?
#include "messaging/address_vector.h"

#include <algorithm>
#include <functional>

namespace weft::messaging {

AddressVector::AddressVector(std::size_t expected) {
  entries_.reserve(std::min<std::size_t>(expected, 65536));
}

PeerIndex AddressVector::insert(const os::SocketAddress& address) {
  const std::lock_guard guard(lock_);
  PeerIndex index = entries_.size();
  if (free_.empty()) {
    entries_.emplace_back();
  } else {
    std::pop_heap(free_.begin(), free_.end(), std::greater<>());
    index = free_.back();
    free_.pop_back();
  }
  const std::string text = address.text();
  const auto before = by_address_.find(text);
  const PeerIndex lowest = before == by_address_.end() ? index : entries_[before->second].lowest;
  entries_[index] = {address, next_stamp_++, lowest};
  by_address_.emplace(text, index);
  if (index < lowest) set_lowest(text);
  version_.fetch_add(1, std::memory_order_acq_rel);
  return index;
}

bool AddressVector::remove(PeerIndex index) {
  const std::lock_guard guard(lock_);
  if (!in_use(index)) return false;
  const std::string text = entries_[index].address.text();
  const auto [first, last] = by_address_.equal_range(text);
  by_address_.erase(std::find_if(first, last, [&](const auto& e) { return e.second == index; }));
  entries_[index].stamp = 0;
  if (entries_[index].lowest == index) set_lowest(text);
  free_.push_back(index);
  std::push_heap(free_.begin(), free_.end(), std::greater<>());
  version_.fetch_add(1, std::memory_order_acq_rel);
  return true;
}

std::optional<AddressVector::AddressEntry> AddressVector::find(PeerIndex index) const {
  const std::lock_guard guard(lock_);
  if (!in_use(index)) return std::nullopt;
  return entries_[index];
}

// Where an address has got a lower number than before, or lost its lowest.
void AddressVector::set_lowest(const std::string& address) {
  const auto [first, last] = by_address_.equal_range(address);
  PeerIndex lowest = kNoPeer;
  for (auto entry = first; entry != last; ++entry) lowest = std::min(lowest, entry->second);
  for (auto entry = first; entry != last; ++entry) entries_[entry->second].lowest = lowest;
}

PeerIndex AddressVector::lookup(const os::SocketAddress& address) const {
  const std::string text = address.text();
  const std::lock_guard guard(lock_);
  const auto one = by_address_.find(text);
  return one == by_address_.end() ? kNoPeer : entries_[one->second].lowest;
}

PeerIndex AddressVector::canonical(PeerIndex index) const {
  const std::lock_guard guard(lock_);
  return in_use(index) ? entries_[index].lowest : kNoPeer;
}

}  // namespace weft::messaging
