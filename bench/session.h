// SPDX-License-Identifier: BSD-2-Clause
// What the measuring process does from opening its endpoint to the end: checks and repetitions.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "channel.h"
#include "options.h"
#include "process.h"
#include "resource_use.h"

namespace weft::bench {

struct Measurement {
  std::string provider;                       // as it calls itself
  std::uint64_t window = 0;                   // as the endpoint allowed
  std::uint64_t iterations = 0;               // of each repetition
  std::uint64_t lost = 0;                     // datagrams that did not arrive
  std::vector<double> seconds_per_operation;  // one per repetition; fewer if those are slow
  // From fi_getinfo(3), called by client and server at once, to the first answer to a message (or
  // the first operation known to have ended). libfabric itself had been started before.
  double seconds_to_first_message = 0;
  ResourceUse growth{};  // by how much each peer but the first one added to what is in use
};

// The client's side of a whole measurement, on CORE, with the servers at the other ends of
// CHANNELS. The data that the operation moves are checked before and after the timed repetitions; a
// difference is fatal.
Measurement run_client(const Options& options, int core, std::vector<Channel>& channels);

// One process; each thread has its own endpoint as the peer. A rate is that of all threads
// together.
Measurement run_alone(const Options& options, const Cores& cores);

}  // namespace weft::bench
