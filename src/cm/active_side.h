// SPDX-License-Identifier: BSD-2-Clause
// How does a requester make a connection? (IBTA 12.9.7.1)
#pragma once

#include "agent_core.h"
#include "cm/agent.h"

namespace weft::cm {

// REQ out, REP in, RTU out.
class ActiveSide {
 public:
  explicit ActiveSide(Core& core) : core_(core) {}

  Result<ConnectionId> connect(const ConnectRequest& request, User& user, void* context, Time now);
  Status confirm(ConnectionId id, std::span<const std::byte> data);
  void on_rep(const CmArrival& arrival, const wire::CmRep& rep);

 private:
  void on_first_rep(CmConnection& connection, const CmArrival& arrival, const wire::CmRep& rep);
  void on_repeated_rep(CmConnection& connection);

  Core& core_;
};

}  // namespace weft::cm
