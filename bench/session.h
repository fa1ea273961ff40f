// SPDX-License-Identifier: BSD-2-Clause
// What each process does from opening its endpoint to the end: phases, checks, repetitions.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "channel.h"
#include "options.h"

namespace weft::bench {

struct Measurement {
  std::string provider;                       // as it calls itself
  std::uint64_t window = 0;                   // as the endpoint allowed
  std::uint64_t iterations = 0;               // of each repetition
  std::vector<double> seconds_per_operation;  // one per repetition; fewer if those are slow
};

// The client's side of a whole measurement. The data that the operation moves is checked before
// and after the timed repetitions; a difference is fatal.
Measurement run_client(const Options& options, Channel& channel);

// The server's side: does the phases that the client asks for until it says that it is finished.
void run_server(const Options& options, Channel& channel);

// One process, one thread, its own endpoint as the peer.
Measurement run_alone(const Options& options);

}  // namespace weft::bench
