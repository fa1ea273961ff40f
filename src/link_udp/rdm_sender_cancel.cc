// SPDX-License-Identifier: BSD-2-Clause
// How is a message withdrawn that the peer has not asked for?
#include <cerrno>
#include <utility>
#include <vector>

#include "hub.h"
#include "rdm_sender.h"

namespace weft::udp {

bool RdmSender::cancel(const void* cookie) {
  for (Operation& operation : operations_.live()) {
    if (!operation.reported || operation.cookie != cookie) continue;
    if (take_back(operation)) return true;
    if (!operation.offered) return false;
    withdraw(operation);
    return true;
  }
  return false;
}

// Ends a message no packet of which has been sent.
bool RdmSender::take_back(Operation& operation) {
  if (operation.works != 1) return false;
  const std::size_t waiting =
      std::erase_if(early_, [&](const Early& early) { return early.work.cookie == &operation; });
  if (waiting == 0 && !(requester_ && requester_->withdraw(&operation))) return false;
  operation.works = 0;
  operation.error = ECANCELED;
  end(operation);
  return true;
}

// Ends an offer for the program. What has been sent of it stays until the peer has it.
void RdmSender::withdraw(Operation& offer) {
  MessageHeader header;
  header.kind = Kind::kWithdrawn;
  header.exchange = offer.exchange;
  report_end(offer, ECANCELED);
  if (offer.works == 0) end(offer);
  tell(header);
}

}  // namespace weft::udp
