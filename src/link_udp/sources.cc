// SPDX-License-Identifier: BSD-2-Clause
// Which peers have sent datagrams to an endpoint, and which are forgotten when there are too many?
#include "sources.h"

#include <algorithm>

namespace weft::udp {

Sources::Sources(std::uint32_t first, std::size_t most)
    : first_(first), most_(std::max<std::size_t>(most, 1)) {}

void Sources::take_out(std::size_t index) {
  Entry& entry = entries_[index];
  entries_[entry.older].newer = entry.newer;
  entries_[entry.newer].older = entry.older;
}

void Sources::put_last(std::size_t index) {
  Entry& entry = entries_[index];
  entry.older = entries_[0].older;
  entry.newer = 0;
  entries_[entry.older].newer = index;
  entries_[0].older = index;
}

std::size_t Sources::add(const os::SocketAddress& address, link::InboxSink& sink) {
  std::size_t index = entries_.size();
  if (index <= most_) {
    entries_.emplace_back();
  } else {
    index = entries_[0].newer;
    take_out(index);
    indices_.erase(entries_[index].address);
    if (!entries_[index].refused) {
      sink.source_closed(first_ + static_cast<std::uint32_t>(index - 1), false);
    }
  }
  entries_[index].address = address;
  entries_[index].refused = false;
  indices_.emplace(address, index);
  sink.source_opened(first_ + static_cast<std::uint32_t>(index - 1), address);
  return index;
}

std::uint32_t Sources::number_of(const os::SocketAddress& address, link::InboxSink& sink) {
  std::size_t index = entries_[0].older;
  if (index == 0 || !(entries_[index].address == address)) {
    const auto found = indices_.find(address);
    if (found != indices_.end()) {
      index = found->second;
      take_out(index);
    } else {
      index = add(address, sink);
    }
    put_last(index);
  }
  return first_ + static_cast<std::uint32_t>(index - 1);
}

bool Sources::refuse(std::uint32_t number) {
  const std::size_t index = std::size_t{number} - first_ + 1;
  if (number < first_ || index >= entries_.size() || entries_[index].refused) return false;
  entries_[index].refused = true;
  return true;
}

}  // namespace weft::udp
