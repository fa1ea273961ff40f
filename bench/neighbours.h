// SPDX-License-Identifier: BSD-2-Clause
// Which peers has the measuring process met? The server that it measures with, and idle ones.
#pragma once

#include <cstdint>
#include <vector>

#include "channel.h"
#include "options.h"
#include "resource_use.h"
#include "station.h"

namespace weft::bench {

// Opens the station and meets the servers at the other ends of CHANNELS one after the other. Each
// exchanges data that are checked, and then sleeps, connected: two cores are enough for any number.
// The first one is the active one.
class Neighbours {
 public:
  Neighbours(const Options& options, std::vector<Channel>& channels);

  Context& active() { return contexts_.front(); }
  Channel& active_channel() { return channels_.front(); }
  const Endpoint& endpoint() const { return station_.endpoint(); }

  // From before the station was opened to the first answer.
  double seconds_to_first_message() const { return seconds_to_first_message_; }
  // By how much each peer but the first one added to what is in use, on the average, when all
  // of them have been idle for a while.
  ResourceUse growth() const { return growth_; }

  // Checks data with every server once more, and lets it end.
  void part();

 private:
  void meet_next();
  void settle();
  void check(std::size_t number);

  const Options& options_;
  std::vector<Channel>& channels_;
  Clock::time_point start_;
  Station station_;
  std::vector<Context> contexts_;
  std::uint8_t seed_ = 0x31;
  double seconds_to_first_message_ = 0;
  ResourceUse growth_{};
};

}  // namespace weft::bench
