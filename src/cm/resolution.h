// SPDX-License-Identifier: BSD-2-Clause
// How is the queue pair of a service for datagrams found? (IBTA 12.11)
#pragma once

#include "agent_core.h"
#include "cm/agent.h"

namespace weft::cm {

// SIDR_REQ and SIDR_REP in both directions. The communication id is the request id.
class Resolution {
 public:
  explicit Resolution(Core& core) : core_(core) {}

  Result<ConnectionId> resolve(const ResolveRequest& request, User& user, void* context, Time now);
  Status answer(ConnectionId id, const wire::CmSidrRep& reply, Time now);
  void on_request(const CmArrival& arrival, const wire::CmSidrReq& request);
  void on_reply(const CmArrival& arrival, const wire::CmSidrRep& reply);

 private:
  Core& core_;
};

}  // namespace weft::cm
