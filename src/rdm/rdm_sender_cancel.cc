// SPDX-License-Identifier: BSD-2-Clause
// How is a message withdrawn that the peer has not asked for?
#include <cerrno>
#include <utility>
#include <vector>

#include "flow_table.h"
#include "rdm_sender.h"
#include "shared.h"

namespace weft::rdm {

bool RdmSender::cancel(const void* cookie) {
  for (RdmOperation& operation : operations_.live()) {
    if (!operation.reported || operation.cookie != cookie) continue;
    if (take_back(operation)) return true;
    if (!operation.offered) return false;
    withdraw(operation);
    return true;
  }
  return false;
}

// Ends a message no packet of which has been sent.
bool RdmSender::take_back(RdmOperation& operation) {
  if (operation.works != 1) return false;
  const std::size_t waiting =
      std::erase_if(early_, [&](const Early& early) { return early.work.cookie == &operation; });
  if (waiting == 0 && !(requester_ && requester_->withdraw(&operation))) return false;
  operation.works = 0;
  operation.failure.error = ECANCELED;
  end(operation);
  return true;
}

// Ends an offer for the program. What has been sent of it stays until the peer has it.
void RdmSender::withdraw(RdmOperation& offer) {
  MessageHeader header;
  header.kind = MessageKind::kWithdrawn;
  header.exchange = offer.exchange;
  report_end(offer, ECANCELED);
  if (offer.works == 0) end(offer);
  tell(header);
}

}  // namespace weft::rdm
