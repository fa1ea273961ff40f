// SPDX-License-Identifier: BSD-2-Clause
// What have the ports of one domain counted together, those that are closed included?
#include "device/port_totals.h"

namespace weft::device {
namespace {

void add(Stats& sum, const Stats& part) {
  for (std::size_t i = 0; i < kStats; ++i) {
    const auto stat = static_cast<Stat>(i);
    sum.add(stat, part.of(stat));
  }
}

}  // namespace

std::shared_ptr<Stats> PortTotals::take(StatsFile& file, const std::string& owner) {
  const std::shared_ptr<Stats> block = file.take(owner);
  std::shared_ptr<Stats> port(
      block.get(), [totals = shared_from_this(), block](Stats* stats) { totals->leave(*stats); });
  const std::lock_guard guard(mutex_);
  open_.push_back(port.get());
  return port;
}

// A forked child leaves its parent's alone: a thread of the parent may have held the lock. Both at
// once: a sum between them would be without the port's counts, or have them twice.
void PortTotals::leave(const Stats& port) {
  if (origin_.inherited()) return;
  const std::lock_guard guard(mutex_);
  std::erase(open_, &port);
  add(closed_, port);
}

void PortTotals::add_to(Stats& sum) const {
  const std::lock_guard guard(mutex_);
  add(sum, closed_);
  for (const Stats* port : open_) add(sum, *port);
}

}  // namespace weft::device
