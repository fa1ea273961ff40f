// SPDX-License-Identifier: BSD-2-Clause
// Which peers have sent datagrams to an endpoint, and which are forgotten when there are too many?
#include "sources.h"

#include <algorithm>
#include <iterator>

namespace weft::udp {

Sources::Sources(std::uint32_t first, std::size_t most)
    : first_(first), most_(std::max<std::size_t>(most, 1)) {}

Sources::Position Sources::add(const os::SocketAddress& address, link::InboxSink& sink) {
  if (numbers_.size() < most_) {
    const auto number = first_ + static_cast<std::uint32_t>(numbers_.size());
    numbers_.push_back(by_age_.insert(by_age_.begin(), {number, {}}));
  } else {
    const Entry& oldest = by_age_.front();
    addresses_.erase(oldest.address);
    if (!oldest.refused) sink.source_closed(oldest.number, false);
  }
  by_age_.front().address = address;
  by_age_.front().refused = false;
  addresses_.emplace(address, by_age_.begin());
  sink.source_opened(by_age_.front().number, address);
  return by_age_.begin();
}

std::uint32_t Sources::number_of(const os::SocketAddress& address, link::InboxSink& sink) {
  if (by_age_.empty() || !(by_age_.back().address == address)) {
    const auto found = addresses_.find(address);
    const Position position = found != addresses_.end() ? found->second : add(address, sink);
    by_age_.splice(by_age_.end(), by_age_, position);
  }
  return by_age_.back().number;
}

bool Sources::refuse(std::uint32_t number) {
  const std::size_t index = std::size_t{number} - first_;
  if (number < first_ || index >= numbers_.size() || numbers_[index]->refused) return false;
  return numbers_[index]->refused = true;
}

}  // namespace weft::udp
