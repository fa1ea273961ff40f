// SPDX-License-Identifier: BSD-2-Clause
// How does a requester make a connection? (IBTA 12.9.7.1)
#pragma once

#include "agent_core.h"
#include "cm/agent.h"
#include "liveness.h"

namespace weft::cm {

// REQ out, REP in, RTU out.
class ActiveSide {
 public:
  ActiveSide(Core& core, Liveness& liveness) : core_(core), liveness_(liveness) {}

  Result<ConnectionId> connect(const ConnectRequest& request, User& user, void* context, Time now);
  Status confirm(ConnectionId id, std::span<const std::byte> data, Time now);
  void on_rep(const CmArrival& arrival, const wire::CmRep& rep);

 private:
  void on_first_rep(CmConnection& connection, const CmArrival& arrival, const wire::CmRep& rep);
  void on_repeated_rep(CmConnection& connection);

  Core& core_;
  Liveness& liveness_;
};

}  // namespace weft::cm
