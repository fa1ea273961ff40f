// SPDX-License-Identifier: BSD-2-Clause
// How does an endpoint send to one peer over the network?
#pragma once

#include <memory>

#include "accesses.h"
#include "flow_initiator.h"
#include "flow_mtu.h"
#include "work_queue.h"

namespace weft::rdm {

struct Shared;

// The sending half of the flow to a peer: asks for it, unless it belongs to a pair, then sends its
// packets, until its end. One thread at a time.
class RdmSender {
 public:
  // `pair`: communication id of the connection of the pair that it belongs to, or 0.
  RdmSender(Shared& shared, std::uint32_t context, std::shared_ptr<const roce::Path> path,
            std::size_t path_mtu, cm::ConnectionId pair = 0);

  FlowInitiator& flow() { return flow_; }
  const FlowInitiator& flow() const { return flow_; }
  WorkQueue& queue() { return queue_; }
  Operations& operations() { return queue_.operations(); }
  const Operations& operations() const { return queue_.operations(); }
  Accesses& accesses() { return accesses_; }

  // As link::Flow has them; Operations::report() reports the end.
  link::Outcome send(const link::SendRequest& request);
  bool cancel(const void* cookie);
  // Ends everything: no buffer is used any more. Messages that were copied are sent all the same,
  // unless something before them cannot be.
  void give_up();
  // The last flow of the user that was held (Operations::hold()) does not refer to it any more.
  void release();
  // Nothing is in flight and no flow refers to it: it may be destroyed.
  bool finished() const;

  // A response of the peer. The caller activates the context afterwards.
  void take(const wire::Packet& response, os::Time now);
  // Packets of this flow arrived ECN-marked: a CNP came.
  void marked(os::Time now) {
    if (queue_.requester() != nullptr) queue_.requester()->marked(now);
  }
  // Both ends have agreed on the flow of that identity, for which they took `round_trip`.
  // `connection`: communication id of the peer.
  void open(const FlowReply& reply, std::uint64_t identity, std::uint32_t connection,
            os::Time::duration round_trip);
  // The peer has ended the flow.
  void leave(const FlowEnd& end, os::Time now);
  // What the connection manager reports of a connection, which may have been replaced: a REP, a
  // REJ or the end of the time, a DREQ, a dead peer.
  void on_reply(cm::ConnectionId id, const FlowReply& reply, const wire::CmMad& rep, os::Time now);
  void on_rejected(cm::ConnectionId id, wire::CmReason reason, const FlowEnd& end);
  void on_disconnected(cm::ConnectionId id, const FlowEnd& end, os::Time now);
  void on_lost(cm::ConnectionId id);
  // All that has not ended fails. Sends a DREQ, unless the flow belongs to a pair.
  void lose(link::PeerState state);
  // A message of the peer's connection manager may have arrived: the peer may live. False when it
  // is not known to.
  bool look_for_sign();
  // The peer was heard from.
  void note_received(os::Time now);

  // The path to the peer carries no more than that (FlowMtu::narrow()).
  void narrow(std::size_t path_mtu);
  std::size_t carries() const { return mtu_.carries(); }

  // Sends what may be sent now.
  void emit(os::Time now);
  // When emit() has something to do.
  os::Time due() const;
  // Nothing has been going on: memory for it is given back.
  void trim() { queue_.trim(); }
  // False while something is to be sent, or waits for an answer.
  bool quiet() const;

 private:
  void close();
  void ask(os::Time now);
  void look_for_hole(transport::Requester& requester, os::Time now);

  Shared& shared_;
  const bool paired_;
  FlowInitiator flow_;
  FlowMtu mtu_;
  WorkQueue queue_;
  Accesses accesses_;
};

}  // namespace weft::rdm
