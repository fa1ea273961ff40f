// SPDX-License-Identifier: BSD-2-Clause
// What does a flow remember of a request until it has ended?
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <list>
#include <vector>

#include "base/types.h"
#include "link/flow.h"
#include "link/inbox.h"

namespace weft::rdm {

class WorkQueue;

// A message, an access or an atomic operation in flight, or the receive of a message that a peer
// offers.
struct RdmOperation {
  // How it failed, if it did.
  struct Failure {
    int error = 0;
    int detail = 0;
  };
  WorkQueue* queue = nullptr;  // of its flow
  std::list<RdmOperation>::iterator self;
  void* cookie = nullptr;      // of the request, or of the receive that a peer's message is for
  bool reported = false;       // its end is reported
  bool takes = false;          // a peer's message is received
  bool borrows = false;        // buffers of the program are used until the end
  bool awaits_answer = false;  // of the peer, which names it by its rendezvous id
  bool offered = false;        // the peer has not said yet how much of it it wants
  bool reads = false;          // memory of the peer
  bool follows_reads = false;  // that were asked for before
  unsigned works = 0;          // that have not ended
  std::uint32_t rendezvous_id = 0;  // 0: none
  Failure failure;
  std::size_t charged = 0;  // bytes of its channel's share, as it answers the peer
  std::size_t count = 0;
  // Of an offer, or where a result or a peer's message goes.
  std::array<LocalRange, link::kMaxLinkSges> sges{};
  std::uint64_t length = 0;     // of those
  std::uint64_t there = 0;      // bytes of a peer's message, so far
  link::Offer offer;            // of that: by which the peer offered it
  std::vector<std::byte> copy;  // header and bytes that were copied

  std::span<const LocalRange> buffers() const { return {sges.data(), count}; }
  void keep(std::span<const LocalRange> ranges, std::uint64_t bytes) {
    count = ranges.size();
    std::copy(ranges.begin(), ranges.end(), sges.begin());
    length = bytes;
  }
};

// Operations that have ended, of all flows of an endpoint: each is made once. No more than were
// live at the same time.
using FreeOperations = std::list<RdmOperation>;

}  // namespace weft::rdm
