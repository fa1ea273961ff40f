// SPDX-License-Identifier: BSD-2-Clause
// How do attempts and connections end?
#pragma once

#include "agent_core.h"
#include "cm/agent.h"
#include "liveness.h"

namespace weft::cm {

// REJ, DREQ and DREP in both directions, and timeouts.
class Endings {
 public:
  Endings(Core& core, Liveness& liveness) : core_(core), liveness_(liveness) {}

  Status reject(ConnectionId id, wire::CmReason reason, std::span<const std::byte> data, Time now);
  Status refuse(ConnectionId id, wire::CmReason reason, std::span<const std::byte> data, Time now);
  void disconnect(ConnectionId id, std::span<const std::byte> data, Time now);
  void abandon(ConnectionId id, Time now);
  // Its timer is due: the kept message is repeated, or the state ends.
  void on_timer(CmConnection& connection, Time now);

  // Nothing receives packets at that address, or the report is forged.
  void on_unreachable(const Remote& at, Time now);
  void on_rej(const CmArrival& arrival, const wire::CmRej& rej);
  void on_dreq(const CmArrival& arrival, const wire::CmDreq& dreq);
  void on_drep(const CmArrival& arrival, const wire::CmDrep& drep);

 private:
  void give_up(CmConnection& connection, wire::CmReason reason, std::span<const std::byte> data,
               Time now);
  void send_dreq(CmConnection& connection, std::span<const std::byte> data, Time now);
  void suspect(const CmArrival& arrival, ConnectionId id);
  void expire(CmConnection& connection, Time now);
  void fail(CmConnection& connection, EventKind kind, Time now);

  Core& core_;
  Liveness& liveness_;
};

}  // namespace weft::cm
