// SPDX-License-Identifier: BSD-2-Clause
// What do threads reach that each send to an endpoint of their own?
#pragma once

#include <cstdint>
#include <deque>

#include "options.h"
#include "process.h"
#include "station.h"

namespace weft::bench {

// As many threads as OPTIONS ask for, in one domain. Each has an endpoint, buffers and a completion
// queue of its own; the first one is the calling thread.
class LoneThreads {
 public:
  // The first thread is bound to the client's core, the second one to the server's, the third one
  // to the client's again.
  LoneThreads(const Options& options, const Cores& cores);

  const Endpoint& endpoint() const { return stations_.front().endpoint(); }
  // Each thread sends itself one message with a pattern. A difference is fatal.
  void check(std::uint8_t seed);
  // Each sends itself so many messages. The seconds from when the first one began until the last
  // one had ended.
  double run(std::uint64_t iterations);

 private:
  const Options& options_;
  const Cores cores_;
  std::deque<Station> stations_;
  std::deque<Context> contexts_;
};

}  // namespace weft::bench
