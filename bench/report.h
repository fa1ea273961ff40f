// SPDX-License-Identifier: BSD-2-Clause
// How a measurement is told: one line of JSON.
#pragma once

#include <string>

#include "connect.h"
#include "options.h"
#include "session.h"

namespace weft::bench {

// What was asked for, by its names on the command line ("provider", "endpoint", "operation",
// "metric", "size", "receive", "count_by", "peers"); "window" and "iterations" of a repetition;
// "lost": datagrams that did not arrive; "value": the median of "samples", in "unit": us
// (latencies), M/s (rate: 10^6 operations per second) or GB/s (bandwidth: 10^9 bytes per second);
// "first_message_ms", "private_kib_per_peer", "shared_kib_per_peer", "sockets_per_peer" and
// "threads_per_peer": see Measurement; "pinned": whether the two sides had a core each; "verified":
// that data were compared; "libfabric": the version that ran.
std::string to_json(const Options& options, const Measurement& measurement, bool pinned);

// Of metric connect: "value" in us for each connection, "first_ms", "median_ms", "slow_ms" and
// "last_to_first_quarter": see ConnectFigures; "descriptors_per_connection", and so on: what the
// process that asked for them has more of. Shared memory is told twice: what is resident in that
// process, and what files of /dev/shm have in use, those of both processes.
std::string to_json(const Options& options, const ConnectFigures& figures);

// Of metric mesh: "value" in ms until all connections were made, their number, and "us_each".
std::string to_json(const Options& options, double mesh_seconds);

}  // namespace weft::bench
