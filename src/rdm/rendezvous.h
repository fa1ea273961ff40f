// SPDX-License-Identifier: BSD-2-Clause
// How does a message reach its receive that is offered before its bytes are sent?
//
// The sender sends an RTS (RdmSender::send) and keeps the message. The receiver answers with a CTS
// over its own flow to the sender, once a receive has matched; the sender then writes the bytes to
// that receive, by its key (message.h).
#pragma once

#include "work_queue.h"

namespace weft::rdm {

// Lets the peer write the first `length` bytes of the message that it offers over the flow `from`
// into SGEs, for the receive `cookie`: sends a CTS. `queue` is that of the flow to the peer.
void send_cts(WorkQueue& queue, const link::Offer& offer, std::uint64_t from,
              std::span<const LocalRange> sges, std::uint64_t length, void* cookie);
// The peer wants so many bytes of a message that it was offered, at that receive key.
void deliver(RdmOperation& offered, std::uint32_t key, std::uint64_t length, os::Time now);
// Ends an offer for the program (ECANCELED). The RTS stays until the peer has it.
void withdraw(RdmOperation& offer);

}  // namespace weft::rdm
