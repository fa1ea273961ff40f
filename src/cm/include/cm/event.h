// SPDX-License-Identifier: BSD-2-Clause
// What does a connection manager report to the user of a connection?
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/time.h"
#include "cm/remote.h"
#include "wire/cm_message.h"

namespace weft::cm {

// A communication id of this end: `port << 16 | number`. 0: none.
using ConnectionId = std::uint32_t;
// 0: none.
using ListenerId = std::uint32_t;

enum class EventKind : std::uint8_t {
  kRequest,      // to a listener: a REQ; to be answered, or ended by forward()
  kReply,        // to the requester: a REP; to be answered by confirm() or reject()
  kEstablished,  // to the acceptor: RTU, or established()
  // The end of an attempt:
  kRejected,     // a REJ, with its reason and private data
  kTimedOut,     // no answer within the time of the request, or no RTU
  kWithdrawn,    // to a listener or acceptor: the requester has sent a REJ (after the REP: with
                 // reason 4 or 6) or a DREQ
  kOverrun,      // to a listener or acceptor: younger requests have displaced this one
  kUnreachable,  // to the requester: nothing receives packets there
                 // (ConnectRequest::ends_unreachable)
  // The end of an established connection:
  kDisconnected,  // a DREQ
  kPeerLost,      // the peer's process is gone, or has not answered in time
  // Service id resolution (SIDR):
  kResolve,   // to a listener: a SIDR_REQ; to be answered by answer()
  kResolved,  // the end: a SIDR_REP
};

// Each attempt ends with exactly one of kReply then confirm(), kEstablished, or an end; each
// established connection with exactly one end, unless this side has called
// disconnect(). After an end the id is unknown to the user.
struct CmEvent {
  EventKind kind{};
  ConnectionId id = 0;
  ListenerId listener = 0;  // of an undecided request
  void* context = nullptr;  // of the connection; of a request: of its listener
  Remote remote;            // of the peer
  // The message: null when none stands behind the event. It and `more` live until the function
  // returns.
  const wire::CmMad* mad = nullptr;
  // Bytes behind the MAD in the same packet: private data beyond the room of the MAD, between Weft
  // hosts only (docs/formats/connection_manager.md).
  std::span<const std::byte> more;
};

// The receiver of events. handle() may call any function of the agent but deliver().
class User {
 public:
  virtual void handle(const CmEvent& event) = 0;
  // When data of that connection's peer were last received; Time{} when this is not known. It calls
  // no function of the agent. `context` is that of the connection.
  virtual Time last_received(ConnectionId id, void* context) = 0;

 protected:
  ~User() = default;
};

}  // namespace weft::cm
