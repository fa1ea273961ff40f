// SPDX-License-Identifier: BSD-2-Clause
// How does an endpoint receive from one peer over the network?
#pragma once

#include <memory>

#include "base/budget.h"
#include "cm/event.h"
#include "os/clock.h"
#include "rdm/flow_message.h"
#include "request_target.h"
#include "roce/path.h"
#include "transport/responder.h"

namespace weft::rdm {

struct Shared;

// The receiving half of the flow from a peer: its responder, and the agreement of REQ and REP. That
// of a pair (RequestSource::pair) has the pair's connection, which the pair ends, until a change
// gives it its own. One thread at a time.
class RdmReceiver {
 public:
  // For the peer of that REQ, which is answered with `reply` on `connection`; in a pair, for the
  // peer of that REP.
  RdmReceiver(Shared& shared, const Introduction& other, const FlowReply& reply,
              cm::ConnectionId connection, const RequestSource& source);

  std::uint32_t number() const { return target_.source().number; }
  std::uint32_t context() const { return context_; }
  std::size_t path_mtu() const { return responder_.settings().path_mtu; }
  const roce::Path& path() const { return *target_.source().path; }
  std::uint64_t endpoint_id() const { return target_.source().endpoint_id; }
  std::uint32_t peer_queue_pair() const { return responder_.settings().destination; }
  std::uint64_t identity() const { return target_.source().identity; }
  RequestTarget& target() { return target_; }
  const RequestTarget& target() const { return target_; }

  // A request of the peer. The caller activates the context afterwards.
  void take(const wire::Packet& request, os::Time now);
  // Sends the answers that a peer waits for, and the others when their time has come; or all.
  void emit(bool all, os::Time now);
  // When emit() has something to do: os::Time::max() when only the peer can change anything.
  os::Time due() const;

  // Communication id of this end; 0 when the connection has ended.
  cm::ConnectionId connection() const { return connection_ != 0 ? connection_ : pair_; }
  bool is_paired() const { return pair_ != 0; }
  // The peer is known to receive the answers to its REQ.
  bool is_established() const { return established_; }
  void establish() { established_ = true; }
  // Continues with packets of another size under a new connection, which will be accepted with what
  // this returns, and is established then: the peer knows the flow's identity. The former one lives
  // until the peer is known to use that one.
  FlowReply change(const FlowRequest& request, cm::ConnectionId connection);
  // That connection has ended. False when it is not the flow's any more.
  bool forget(cm::ConnectionId connection);
  // Ends the connection. Sends a DREQ.
  void disconnect(const FlowEnd& end);
  // Forgets the connection, without a message to the peer.
  void abandon();
  // Nothing has been going on: memory for it is given back. False to be called again.
  bool trim(os::Time now) { return target_.trim(now); }

  Psn expected() const { return responder_.expected(); }
  os::Time last_received() const { return last_received_; }

 private:
  void prove(os::Time now);

  Shared& shared_;
  const std::uint32_t context_;
  Psn first_;  // a request with this number or a later one proves that the peer has the REP
  const cm::ConnectionId pair_;
  cm::ConnectionId connection_;
  cm::ConnectionId previous_ = 0;  // until the peer is known to use that one
  bool established_ = false;
  bool proven_ = false;  // such a request has arrived
  os::Time last_received_;
  Budget::Share packets_;  // of Shared::packet_memory
  RequestTarget target_;
  transport::Responder responder_;  // goes first: its end breaks off messages of the target
};

}  // namespace weft::rdm
