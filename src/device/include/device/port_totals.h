// SPDX-License-Identifier: BSD-2-Clause
// What have the ports of one domain counted together, those that are closed included?
#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "base/stats.h"
#include "device/stats_file.h"
#include "os/origin.h"

namespace weft::device {

// The sum of the counters of ports. Any thread; ports that count meanwhile do not wait.
class PortTotals : public std::enable_shared_from_this<PortTotals> {
 public:
  // As StatsFile::take(), for a port whose counts stay in the totals after it has closed. It keeps
  // the totals.
  std::shared_ptr<Stats> take(StatsFile& file, const std::string& owner);
  // Adds the totals to `sum`. No counter is less than in an earlier call.
  void add_to(Stats& sum) const;

 private:
  void leave(const Stats& port);

  const os::Origin origin_{};
  mutable std::mutex mutex_;
  std::vector<const Stats*> open_;
  Stats closed_;  // the sum of the others
};

}  // namespace weft::device
