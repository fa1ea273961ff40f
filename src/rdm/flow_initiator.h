// SPDX-License-Identifier: BSD-2-Clause
// What does the requesting end of a flow know of its peer, and which connections does it have?
#pragma once

#include <chrono>
#include <memory>
#include <optional>

#include "cm/event.h"
#include "link/flow.h"
#include "os/clock.h"
#include "rdm/flow_message.h"
#include "roce/path.h"

namespace weft::rdm {

struct Shared;

enum class FlowPhase : std::uint8_t { kAsking, kOpen, kLost };

// The identity of a flow that this end begins, its phase, its connection, and the one that is to
// replace it with another path MTU. Of a pair of flows (paired_flow.h), both directions have the
// pair's connection, which the pair ends, until a change gives one of them its own. One thread at a
// time.
class FlowInitiator {
 public:
  // `pair`: communication id of the pair's connection, or 0.
  FlowInitiator(Shared& shared, std::uint32_t context, std::shared_ptr<const roce::Path> path,
                cm::ConnectionId pair);

  FlowPhase phase() const { return phase_; }
  bool is_open() const { return phase_ == FlowPhase::kOpen; }
  std::uint32_t context() const { return context_; }
  const roce::Path& path() const { return *path_; }
  const os::SocketAddress& peer() const { return path_->to; }
  // Of the peer, once it is known: 0 before the REP.
  std::uint64_t endpoint_id() const { return peer_.endpoint_id; }
  // By which answers and CNPs name the flow: the transaction id of the REQ that made it. 0 before
  // the REP.
  std::uint64_t identity() const { return identity_; }
  link::PeerState peer_state() const { return peer_state_; }

  // Communication id of this end; 0: none.
  cm::ConnectionId connection() const { return connection_ != 0 ? connection_ : pair_; }
  // Whether a connection is the flow's own, or is to become it.
  bool has(cm::ConnectionId connection) const {
    return connection != 0 && (connection == connection_ || connection == next_);
  }

  // REQ and REP have agreed on the flow of that identity. `connection`: communication id of the
  // peer.
  void open(const Introduction& other, std::uint64_t identity, std::uint32_t connection);
  // The flow is over, and why. Sends a DREQ, unless the flow belongs to a pair.
  void end(link::PeerState state);
  // Ends its connections.
  void disconnect();
  // That connection has ended. False when it is no connection of the flow any more.
  bool forget(cm::ConnectionId connection);

  // As link::Flow::suspect().
  void suspect() { suspected_ = true; }
  // Something was posted: the peer has to answer within the connect timeout. Time in which this end
  // does not look does not count.
  void limit_asking();
  // That time is over.
  bool is_asked_out() const { return asks_for_ == os::Time::duration::zero(); }

  // Looks for an answer that has not come: sends a REQ if none is under way. The pause to the next
  // look doubles.
  void ask(std::size_t path_mtu, os::Time now);
  os::Time next_look() const { return next_look_; }
  os::Time first_req_at() const { return first_req_; }
  // Asks for packets of another size, from `first` on. The REP makes the new connection that of the
  // flow.
  void ask_for_change(std::size_t path_mtu, Psn first, os::Time now);
  void change(const wire::CmMad& rep);

  // When the peer was last heard of, and that it was just now.
  os::Time last_received() const { return last_received_; }
  void note_received(os::Time now) { last_received_ = now; }
  // An ICMP port unreachable before the REP. True when the caller suspects, and the peer counts as
  // dead: errors may be forged, or late.
  bool count_unreachable();

 private:
  // What the REPs have said.
  struct PeerEnd {
    std::uint64_t endpoint_id = 0;
    std::uint32_t connection = 0;  // communication id
  };

  // Forgets its connections, without a message to the peer.
  void abandon();
  cm::ConnectionId connect(const FlowRequest& request, std::chrono::nanoseconds limit,
                           os::Time now);
  FlowRequest request_of(std::size_t path_mtu) const;

  Shared& shared_;
  const std::uint32_t context_;
  const std::shared_ptr<const roce::Path> path_;
  const cm::ConnectionId pair_;
  FlowPhase phase_ = FlowPhase::kAsking;
  link::PeerState peer_state_ = link::PeerState::kAlive;
  std::uint64_t identity_ = 0;
  PeerEnd peer_;
  cm::ConnectionId connection_ = 0;
  cm::ConnectionId next_ = 0;
  bool suspected_ = false;
  os::Time first_req_{};
  os::Time next_look_{};
  std::optional<os::Time::duration> asks_for_;  // what is left of the connect timeout
  std::chrono::milliseconds pause_;             // until the look after the next
  os::Time last_received_{};
  unsigned unreachable_ = 0;
};

}  // namespace weft::rdm
