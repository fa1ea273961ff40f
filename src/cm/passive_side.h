// SPDX-License-Identifier: BSD-2-Clause
// How does a listener accept a connection? (IBTA 12.9.7.2)
#pragma once

#include "agent_core.h"
#include "cm/agent.h"
#include "liveness.h"

namespace weft::cm {

// REQ in, REP out, RTU in; listeners with their half-open requests.
class PassiveSide {
 public:
  PassiveSide(Core& core, Liveness& liveness) : core_(core), liveness_(liveness) {}

  Result<ListenerId> listen(std::uint64_t service, std::size_t backlog, User& user, void* context);
  void set_backlog(ListenerId id, std::size_t backlog);
  void stop(ListenerId id, Time now);

  Status claim(ConnectionId id, User& user, void* context);
  Status accept(ConnectionId id, const AcceptRequest& reply, User& user, void* context, Time now);
  // Null when that is no undecided request.
  CmConnection* undecided(ConnectionId id);
  Status delay(ConnectionId id, std::uint8_t timeout, Time now);
  Status forward(ConnectionId id, Time now);
  Result<ConnectionId> adopt(const CmArrival& arrival, User& user, void* context);
  void established(ConnectionId id, Time now);

  void on_req(const CmArrival& arrival, const wire::CmReq& req);
  void on_rtu(const CmArrival& arrival, const wire::CmRtu& rtu);

 private:
  void end_half_open(CmConnection& connection, Time now);
  void on_repeated_req(CmConnection& connection, Time now);
  void reject_again(const CmConnection& connection, Time now);
  CmConnection* twin_of(const CmArrival& arrival, const wire::CmReq& req);
  CmConnection* add(const CmArrival& arrival, const wire::CmReq& req);
  void rest_forwarded(CmConnection& connection, Time now);
  void open(ServiceListener& listener, const CmArrival& arrival, const wire::CmReq& req);
  void acknowledge(CmConnection& connection, Time now);
  void answer(const CmArrival& arrival, const wire::CmReq& req, wire::CmReason reason);
  static void count_credit(CmConnection& connection);
  void give_back(const CmConnection& connection, unsigned credits);
  void establish(CmConnection& connection, const CmArrival* arrival, Time now);
  void on_twin(CmConnection& twin, const CmArrival& arrival, const wire::CmReq& req);

  Core& core_;
  Liveness& liveness_;
};

}  // namespace weft::cm
