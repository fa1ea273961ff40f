// SPDX-License-Identifier: BSD-2-Clause
// What may a user set, and what are the defaults?
#pragma once

#include <chrono>
#include <cstddef>
#include <string>

#include "link/place.h"

namespace weft::messaging {

// Settings of the device, read once and passed down.
struct Options {
  // How long a post waits (answering "again") for a peer that is not there yet.
  std::chrono::milliseconds connect_timeout{2000};
  // How long a peer on the network may be silent while an operation waits for it: stopped by a
  // debugger, or behind a cable that was pulled.
  std::chrono::milliseconds peer_timeout{60'000};
  // How long a request for a connection waits for the first answer of its listener.
  std::chrono::milliseconds request_timeout{30000};
  // Messages up to this many bytes are copied through shared memory; larger ones directly.
  std::size_t eager_limit = 8192;
  // Bytes of unexpected messages, with what it costs to keep them (Matcher::cost_of), that an
  // endpoint keeps before it stops taking in more.
  std::size_t unexpected_limit = std::size_t{1} << 30;
  // Ways to reach peers that may be used.
  link::Links links;
  // Whether datagram endpoints may be reached by peers that are not Weft's: rdma_rxe, RNICs.
  bool foreign_peers = true;
  // Base of the runtime directory; empty: the default of os::runtime_directory().
  std::string runtime_dir;
};

}  // namespace weft::messaging
