// SPDX-License-Identifier: BSD-2-Clause
// Which number stands for which address?
#include "messaging/address_vector.h"

#include <algorithm>
#include <functional>

namespace weft::messaging {

AddressVector::AddressVector(const Locking& locking, std::size_t expected) : lock_(locking) {
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
  entries_[index] = {address, next_stamp_++};
  by_address_.emplace(address.text(), index);
  version_.fetch_add(1, std::memory_order_acq_rel);
  return index;
}

bool AddressVector::remove(PeerIndex index) {
  const std::lock_guard guard(lock_);
  if (index >= entries_.size() || entries_[index].stamp == 0) return false;
  const auto [first, last] = by_address_.equal_range(entries_[index].address.text());
  by_address_.erase(std::find_if(first, last, [&](const auto& e) { return e.second == index; }));
  entries_[index].stamp = 0;
  free_.push_back(index);
  std::push_heap(free_.begin(), free_.end(), std::greater<>());
  version_.fetch_add(1, std::memory_order_acq_rel);
  return true;
}

std::optional<AddressVector::Entry> AddressVector::find(PeerIndex index) const {
  const std::lock_guard guard(lock_);
  if (index >= entries_.size() || entries_[index].stamp == 0) return std::nullopt;
  return entries_[index];
}

PeerIndex AddressVector::lookup(const os::SocketAddress& address) const {
  const std::lock_guard guard(lock_);
  PeerIndex lowest = kNoPeer;
  const auto [first, last] = by_address_.equal_range(address.text());
  for (auto entry = first; entry != last; ++entry) lowest = std::min(lowest, entry->second);
  return lowest;
}

PeerIndex AddressVector::canonical(PeerIndex index) const {
  const auto entry = find(index);
  return entry ? lookup(entry->address) : kNoPeer;
}

}  // namespace weft::messaging
