// SPDX-License-Identifier: BSD-2-Clause
// How does a connected endpoint come by its one peer, and how does it part from it?
#pragma once

#include <memory>
#include <span>

#include "link/connection.h"
#include "link/flow.h"
#include "messaging/connection.h"
#include "messaging/matcher.h"

namespace weft::messaging {

class Endpoint;
class MessageReceiver;
class MessageSender;
class PeerFlows;
class SharedPort;

// The peer of a connected endpoint (FI_EP_MSG): a flow to it, and a source from which it sends, by
// a connection of the port. Used with the endpoint's lock held: from a ConnectionSink, or through
// Endpoint::exclusively().
class ConnectedPeer final : link::ConnectionUser {
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

  // Asks the listener at that address for the connection, and accepts a request for it. The sink
  // gets the outcome, perhaps from within the call.
  void request(const os::SocketAddress& listener, std::span<const std::byte> data);
  void accept(const link::ConnectionRequest& request, std::span<const std::byte> data);
  // Ends the connection or the attempt: what is pending, and receives that wait unless they are
  // shared, are reported with `error`.
  void disconnect(int error);
  // Refuses the peer and reports no further events: the endpoint closes.
  void withdraw();

  // For the endpoint: whether the next poll is to part,
  bool parting_is_due() const { return parting_is_due_; }
  // what a poll does before it takes messages in,
  void begin_poll() {
    if (parting_is_due_) [[unlikely]]
      part();
  }
  // and now and then, to notice the end of the peer.
  void check();
  // For the receiver: notices that a source has gone.
  void source_closed(const RemoteSender& source) {
    if (&source == source_.get()) [[unlikely]]
      source_.reset();
  }

 private:
  static constexpr std::uint32_t kNoSource = ~std::uint32_t{0};

  void connected(std::uint32_t source, std::shared_ptr<link::Flow> flow,
                 std::span<const std::byte> data) override;
  void failed(int error, std::span<const std::byte> data) override;
  void ended() override;
  void started(const Result<link::ConnectionNumber>& number, int absent);
  void leave();
  void part();

  ConnectionSink* sink_;
  SharedPort& shared_;
  Endpoint& endpoint_;
  PeerFlows& flows_;
  MessageSender& sender_;
  MessageReceiver& receiver_;
  link::ConnectionNumber number_ = 0;     // of the port's connections
  std::shared_ptr<RemoteSender> source_;  // of an established one
  std::uint32_t bound_ = kNoSource;       // its number, which another source may have by now
  bool parting_is_due_ = false;           // in the next poll
};

}  // namespace weft::messaging
