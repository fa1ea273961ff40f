// SPDX-License-Identifier: BSD-2-Clause
// What does an endpoint promise to its peers?
#pragma once

#include <cstdint>

namespace weft::link {

// An endpoint reaches endpoints of its own kind only; to all others its address is unused.
enum class Service : std::uint32_t {
  kReliableDatagram = 1,  // any number of peers, in order, nothing lost (FI_EP_RDM)
  kDatagram = 2,          // any number of peers, each message may be lost (FI_EP_DGRAM)
  kQueuePairs = 3,        // the queue pairs of a UDP number of verbs (queue/memory_link.h)
};

}  // namespace weft::link
