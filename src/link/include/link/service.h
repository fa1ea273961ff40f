// SPDX-License-Identifier: BSD-2-Clause
// What does an endpoint promise to its peers?
#pragma once

#include <cstdint>

namespace weft::link {

// Endpoints reach those of their own kind only: for others nobody is at their address.
enum class Service : std::uint32_t {
  kReliableDatagram = 1,  // any number of peers, in order, nothing lost (FI_EP_RDM)
  kDatagram = 2,          // any number of peers, each message may be lost (FI_EP_DGRAM)
};

}  // namespace weft::link
