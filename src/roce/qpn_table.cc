// SPDX-License-Identifier: BSD-2-Clause
// Which QPNs does a UDP port have, and which handler owns each?
#include "roce/qpn_table.h"

#include <algorithm>
#include <cerrno>
#include <string>

#include "roce/route.h"

namespace weft::roce {
namespace {

constexpr std::uint32_t kFirstQueuePair = 2;  // its index

constexpr std::uint32_t number_for(QpnUse use, std::uint16_t port) {
  if (use == QpnUse::kManager) return wire::kCmQpn;
  return use == QpnUse::kGroups ? wire::kMulticastQpn : queue_pair_at(port);
}

}  // namespace

Result<std::uint32_t> QpnTable::take(PacketHandler& handler, QpnUse use, os::Time now) {
  if (use == QpnUse::kQueuePair) return take_next(handler, now);
  const std::uint32_t qpn = number_for(use, static_cast<std::uint16_t>(port_));
  Number& number = numbers_[place_of(qpn)];
  if (number.owner != nullptr) {
    return Error{EADDRINUSE, "QPN " + std::to_string(qpn) + " of UDP port " +
                                 std::to_string(port_) + " has an owner"};
  }
  number.owner = &handler;
  return qpn;
}

Result<std::uint32_t> QpnTable::take_next(PacketHandler& handler, os::Time now) {
  for (std::uint32_t i = 0; i < kQueuePairs; ++i, ++turn_) {
    const std::uint32_t index = kFirstQueuePair + turn_ % kQueuePairs;
    const std::uint32_t qpn = port_ << 8 | index;
    if (qpn == wire::kMulticastQpn) continue;
    const std::uint32_t place = place_of(qpn);
    if (place >= numbers_.size()) numbers_.resize(place + 1);
    Number& number = numbers_[place];
    if (number.owner != nullptr || now < number.free_from) continue;
    number.owner = &handler;
    ++turn_;
    return qpn;
  }
  return Error{ENOBUFS,
               "all QPNs of UDP port " + std::to_string(port_) + " are in use or not reusable yet"};
}

void QpnTable::give_back(std::uint32_t qpn, os::Time now) {
  if (owner(qpn) != nullptr) numbers_[place_of(qpn)] = {nullptr, now + kRest};
}

std::vector<PacketHandler*> QpnTable::owners() const {
  std::vector<PacketHandler*> all;
  for (const Number& number : numbers_) {
    if (number.owner != nullptr) all.push_back(number.owner);
  }
  std::ranges::sort(all);
  all.erase(std::unique(all.begin(), all.end()), all.end());
  return all;
}

bool QpnTable::owns_any(const PacketHandler& handler) const {
  return std::ranges::find(numbers_, &handler, &Number::owner) != numbers_.end();
}

}  // namespace weft::roce
