// SPDX-License-Identifier: BSD-2-Clause
// Which RoCEv2 packets are in a capture?
#pragma once

#include <string>
#include <vector>

#include "test_support.h"
#include "wire/icrc.h"

namespace weft::wire::testing {

// A RoCEv2 packet of a capture.
struct Captured {
  Route route;
  Ipv4Words words;
  Bytes datagram;
};

// All of those to RoCE's port in the capture of that name.
std::vector<Captured> packets_of(const std::string& name);

}  // namespace weft::wire::testing
