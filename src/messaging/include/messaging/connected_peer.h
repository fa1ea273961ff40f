// SPDX-License-Identifier: BSD-2-Clause
// How does a connected endpoint come by its one peer, and how does it part from it?
#pragma once

#include <memory>
#include <span>

#include "link/flow.h"
#include "link/inbox.h"
#include "messaging/connection.h"
#include "messaging/matcher.h"

namespace weft::messaging {

class Endpoint;
class MessageReceiver;
class MessageSender;
class PeerFlows;
class SharedPort;

// The peer of a connected endpoint (FI_EP_MSG): a flow to it, and a source from which it sends.
// Without a ConnectionSink the endpoint has no such peer, and control messages are refused. Used
// with the endpoint's lock held: from a ConnectionSink, or through Endpoint::exclusively().
class ConnectedPeer {
 public:
  // Everything outlives it; `sink` is null for an endpoint that is not connected.
  ConnectedPeer(ConnectionSink* sink, SharedPort& port, Endpoint& endpoint, PeerFlows& flows,
                MessageSender& sender, MessageReceiver& receiver)
      : sink_(sink),
        shared_(port),
        endpoint_(endpoint),
        flows_(flows),
        sender_(sender),
        receiver_(receiver) {}

  // Opens the way to `peer`, instead of one that was opened before. It may give the endpoint a port
  // of its own, and so another name. An errno, or 0.
  int open_path(const os::SocketAddress& peer);
  // Control messages of sources that are not accepted yet come here if they have that number, which
  // is not 0. On a port that the endpoint has to itself all of them do.
  void expect(std::uint64_t number);
  // Sends a control message over that way, in order with everything else. An errno, or 0.
  int send_control(std::span<const std::byte> message);
  // Makes `source`, and the end of the way that open_path() opened, the peer: data flow from now
  // on.
  void accept_source(std::uint32_t source);
  // False while the peer cannot be sent to yet: the sink hears when it can.
  bool reached();
  // Listens to that source no more.
  void reject_source(std::uint32_t source);
  // Ends the connection: what is pending, and receives that wait unless they are shared, are
  // reported with `error`.
  void disconnect(int error);
  // Has the next poll call ConnectionSink::parting_is_due(). By then the messages that have come to
  // other endpoints stand in the completion queue, before the receives that end with this
  // connection.
  void part_later();
  // Refuses the peer and hears nothing more: the endpoint closes.
  void withdraw();

  // For the endpoint: whether the next poll is to part,
  bool parting_is_due() const { return parting_is_due_; }
  // or to see whether the peer can be sent to,
  bool awaits_peer() const { return awaits_peer_; }
  // what a poll does before and after it takes messages in,
  void begin_poll() {
    if (parting_is_due_) [[unlikely]]
      part();
  }
  void end_poll() {
    if (awaits_peer_ && reached()) [[unlikely]]
      sink_->reached();
  }
  // and now and then, to notice the end of the peer.
  void check();
  // Has the end of the peer's process wake sleepers.
  void watch_process();
  // For the receiver: takes a control message,
  void hear(const link::Arrival& arrival);
  // and notices that a source has gone.
  void source_closed(const RemoteSender& source, bool died) {
    if (&source == source_.get()) [[unlikely]]
      lose_source(died);
  }

 private:
  static constexpr std::uint32_t kNoSource = ~std::uint32_t{0};

  int open_way(const os::SocketAddress& peer);
  void part();
  void lose_source(bool died);

  ConnectionSink* sink_;
  SharedPort& shared_;
  Endpoint& endpoint_;
  PeerFlows& flows_;
  MessageSender& sender_;
  MessageReceiver& receiver_;
  std::unique_ptr<link::Flow> facing_;    // to a peer that is not admitted yet
  std::shared_ptr<RemoteSender> source_;  // the admitted source
  std::uint32_t bound_ = kNoSource;       // its number, which another source may have by now
  std::uint64_t expected_ = 0;            // expect(); 0: none
  bool awaits_peer_ = false;              // that has been admitted and is not reached yet
  bool parting_is_due_ = false;           // in the next poll
};

}  // namespace weft::messaging
