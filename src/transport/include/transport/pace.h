// SPDX-License-Identifier: BSD-2-Clause
// How fast may packets leave that nobody acknowledges?
#pragma once

#include <cstddef>

#include "transport/settings.h"

namespace weft::transport {

// As fast as they come, until a switch on the way had a queue (a congestion notification): then at
// a rate below the one at which they left. It goes back half of the way in each period without
// another notification, and a step further each time, until it holds back nobody any more. (As
// DCQCN does: Zhu et al., SIGCOMM 2015.) Only time counts in which the rate was used: whoever rests
// goes on where he was, however long the rest, and whoever uses a tenth needs ten times as long.
class Pace {
 public:
  // Packets that were due so long ago may leave together: whoever sends looks at the clock now and
  // then only, and wants to fill trains.
  static constexpr Duration kSlack = std::chrono::microseconds(50);

  // When the next packet may leave, which may be long ago.
  Time due() const { return due_; }
  // A packet of that many bytes leaves.
  void sent(std::size_t bytes, Time now);
  // A switch on the way had a queue. Counts once per period, whoever and how many say so.
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
