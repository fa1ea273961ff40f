// SPDX-License-Identifier: BSD-2-Clause
// What does a context know of the pair of flows that makes a connection of the program?
#pragma once

#include <cstdint>
#include <memory>

#include "cm/event.h"
#include "link/connection.h"
#include "os/clock.h"
#include "rdm/flow_message.h"
#include "roce/path.h"

namespace weft::rdm {

enum class PairPhase : std::uint8_t {
  kAsking,    // a REQ is under way: neither half of the context exists
  kAccepted,  // a REP is: the receiving half exists
  kOpen,
  kLeaving,  // the user has ended it: messages that it has sent are delivered first
  kOver,     // the sending half exists until the user's flow goes
};

// A pair of flows, one in each direction, that one connection of the connection manager makes and
// ends.
struct PairedFlow {
  PairPhase phase = PairPhase::kAsking;
  link::ConnectionUser* user = nullptr;
  link::ConnectionNumber number = 0;       // by which its user names it
  cm::ConnectionId connection = 0;         // communication id of this end; 0: it has ended
  std::shared_ptr<const roce::Path> path;  // to the peer; while asking, to the listener
  os::Time since{};                        // when the REQ or REP left, or the user ended it
  std::size_t path_mtu = 0;                // that the REQ asks for; then that of the REP
  Psn first;                               // the first request to this end
  // What the peer has said in its REQ or REP.
  FlowReply other;
  std::uint64_t identity = 0;     // of both flows: transaction id of the REQ
  std::uint32_t peer_number = 0;  // communication id of the peer
};

}  // namespace weft::rdm
