// SPDX-License-Identifier: BSD-2-Clause
// How fast may unacknowledged packets leave?
#pragma once

#include <cstddef>

#include "transport/settings.h"

namespace weft::transport {

// As fast as they come, until a switch on the way had a queue (a congestion notification): then at
// a rate below the one at which they left. It goes back half of the way in each period without
// another notification, and a step further each time, until it limits no sender any more. (As
// DCQCN does: Zhu et al., SIGCOMM 2015.) Only time counts in which the rate was used: after a rest
// of any length the rate is the same, and at a tenth of the rate recovery takes ten times as long.
class Pace {
 public:
  // Packets that were due so long ago may leave together: a sender looks at the clock now and then
  // only, and fills trains.
  static constexpr Duration kSlack = std::chrono::microseconds(50);

  // When the next packet may leave, which may be long ago.
  Time due() const { return due_; }
  // A packet of that many bytes leaves.
  void sent(std::size_t bytes, Time now);
  // A packet was ECN-marked. Counts once per period, however many notifications arrive.
  void marked(Time now);

  // Bytes in a second; 0: as many as there are.
  double limit() const { return limit_; }

 private:
  double measured(Time now) const;
  void rest_until(Time now);
  void recover(Time now);

  double limit_ = 0;
  double goal_ = 0;  // where it goes half of the way to
  Time marked_{};
  Time recovered_{};
  Time due_{};
  // What has left lately, whatever the limit was.
  Time began_{};
  double bytes_ = 0;
  double before_ = 0;  // bytes in a second, before it began
};

}  // namespace weft::transport
