// SPDX-License-Identifier: BSD-2-Clause
// How does an initiator choose between reaching into another process and asking that process?
#pragma once

#include "link/flow.h"
#include "link_shm/adaptive_choice.h"
#include "link_shm/assisted_requests.h"
#include "link_shm/direct_access.h"
#include "link_shm/peer_slot.h"
#include "link_shm/ring_writer.h"

namespace weft::shm {

// One-sided operations on the memory of a peer, by the faster of two methods. Slot and ring outlive
// it. One thread.
class OneSided {
 public:
  OneSided(PeerSlot& slot, RingWriter& ring);

  // As link::Flow says. An operation that carries data, or that the peer's endpoint counts, is
  // announced by a cell when it is done; kAgain without room for that.
  link::Outcome access(const link::AccessRequest& request);
  link::Outcome atomic(const link::AtomicRequest& request);
  RefusedAccess refused(int reason, std::span<const RemoteRange> remote) const {
    return direct_.refused(reason, remote);
  }

 private:
  int unusable();
  // `kind` (kCountsReads, kCountsWrites) says which peers are told by an `event`.
  template <class Request>
  link::Outcome carry_out(const Request& request, std::size_t most_assisted, AdaptiveChoice& choice,
                          std::uint32_t kind, link::MessageOperation event,
                          link::MessageOperation with_data);
  template <class Request>
  link::Outcome by_faster_method(const Request& request, AdaptiveChoice& choice);

  PeerSlot& slot_;
  RingWriter& ring_;
  DirectAccess direct_;
  AssistedRequests assisted_;
  AdaptiveChoice choice_;         // of small accesses: directly, or by asking the owner
  AdaptiveChoice atomic_choice_;  // the same for atomic operations
};

}  // namespace weft::shm
