// SPDX-License-Identifier: BSD-2-Clause
// How does a message reach its receive that is offered before its bytes are sent?
#include "rendezvous.h"

#include <algorithm>
#include <cerrno>

namespace weft::rdm {

void send_cts(WorkQueue& queue, const link::Offer& offer, std::uint64_t from,
              std::span<const LocalRange> sges, std::uint64_t length, void* cookie) {
  RdmOperation& operation = queue.begin(cookie, false);
  operation.takes = operation.borrows = operation.awaits_answer = true;
  operation.offer = offer;
  if (queue.flow().phase() == FlowPhase::kLost) {
    operation.failure.error = ECONNRESET;
    return queue.operations().end(operation);
  }
  queue.name(operation);
  operation.keep(sges, length);
  operation.copy.resize(kMessageHeader);
  MessageHeader header;
  header.kind = MessageKind::kCts;
  header.rendezvous_id = offer.rendezvous_id;
  header.tag = operation.rendezvous_id;
  header.data = from;
  header.length = length;
  queue.post_header(operation, header, 0);
  queue.started(operation);
}

// A CTS also acknowledges the RTS.
void deliver(RdmOperation& offered, std::uint32_t key, std::uint64_t length, os::Time now) {
  ++offered.works;  // until started()
  offered.offered = offered.awaits_answer = false;
  offered.queue->requester()->arrived(&offered, now);
  work::Work work;
  work.kind = work::WorkKind::kWrite;
  work.key = key;
  work.length = length;
  offered.queue->post_access(offered, work, offered.buffers(), 0);
  offered.queue->started(offered);
}

void withdraw(RdmOperation& offer) {
  WorkQueue& queue = *offer.queue;
  MessageHeader header;
  header.kind = MessageKind::kWithdrawn;
  header.rendezvous_id = offer.rendezvous_id;
  queue.operations().report_end(offer, ECANCELED);
  if (offer.works == 0) queue.operations().end(offer);
  queue.send_control(header);
}

}  // namespace weft::rdm
