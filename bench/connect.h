// SPDX-License-Identifier: BSD-2-Clause
// What does a connection cost, the first one of a process and each of many?
#pragma once

#include <string>
#include <vector>

#include "channel.h"
#include "options.h"
#include "resource_use.h"

namespace weft::bench {

// A connection is made when a message went over it and its answer came back.
struct ConnectFigures {
  std::string provider;
  double first_seconds = 0;  // of the process's first one, from fi_connect(3)
  // Of all others, divided by their number, `under_way` of them made at once: from the first
  // fi_endpoint(3) to the last answer.
  double seconds_each = 0;
  // How long one of those took, from its fi_endpoint(3): half of them less, and one of a hundred
  // more.
  double median_seconds = 0;
  double slow_seconds = 0;
  // The time between the ends of the last quarter of them, divided by that of the first quarter.
  double last_to_first_quarter = 0;
  ResourceUse growth{};  // of this process, by each of those
};

// The side that asks for the connections, on `core`, and the side that accepts them.
ConnectFigures connect_as_client(const Options& options, int core, Channel& channel);
void connect_as_server(const Options& options, int core, Channel& channel);

}  // namespace weft::bench
