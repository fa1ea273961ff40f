// SPDX-License-Identifier: BSD-2-Clause
// How do messages get from their arrival into the buffers of receives?
#pragma once

#include <span>

#include "link/inbox.h"
#include "messaging/calls.h"
#include "messaging/endpoint_port.h"
#include "messaging/endpoint_setup.h"
#include "messaging/matcher.h"

namespace weft::messaging {

class ConnectedPeer;
class DatagramService;
class PeerFlows;
class ReceiveQueue;

// Takes in what arrives at one endpoint: finds the receives of messages in the queue, which other
// endpoints may share, puts the bytes in place and reports. Used with the endpoint's lock held,
// which is the queue's.
class MessageReceiver final : public link::InboxSink {
 public:
  // Everything outlives the receiver; what else there is of the endpoint may be constructed later.
  MessageReceiver(const EndpointSetup& setup, ReceiveQueue& queue, EndpointPort& port,
                  PeerFlows& flows, DatagramService& datagrams, ConnectedPeer& peer);

  // A source of the port is this endpoint's: its messages come here, and are let in.
  void bind(RemoteSender& source);

  // For the queue: gives a kept message of this endpoint to a receive. False when its sender has
  // withdrawn it: then miss() says what becomes of a receive that was posted.
  bool take(Receive& receive, QueuedUnexpected& message);
  // Throws a kept message away, and acknowledges it.
  void discard(QueuedUnexpected& message);
  // For a receive that was posted, and taken out for a message that its sender has withdrawn. The
  // bytes of a multi-receive that were for it stay unused.
  void miss(Receive& receive, bool tagged);
  // Reports a receive that no message came for. A multi-receive some of whose messages are under
  // way goes back with the last of them instead.
  void fail(Receive& receive, bool tagged, int error);
  // Reports a call whose buffers must not be used: 0, or EAGAIN while there is no room for that.
  int refuse(const ReceiveCall& call, const RefusedAccess& refused);
  // Reports what a peek has found: `message`, or none.
  void report_peek(const ReceiveCall& call, const QueuedUnexpected* message, int error);

  // Fails the receives that wait for messages of `source`.
  void fail_waiting(PeerIndex source, int error);
  // Fails the receives that wait for messages of dead peers, unless a living process has taken over
  // the address.
  void settle_deaths();
  // Ends the connection: receives of the endpoint's own queue, which can get nothing more, fail
  // with `error`, and later ones answer `refusal`.
  void end(int refusal, int error);
  // Ends the messages that are under way, with ECANCELED.
  void cancel_under_way();
  // From now on messages that were under way end with ECANCELED; without a report where the
  // receives end with the endpoint, unless `reports`.
  void begin_closing(bool reports);
  bool nothing_under_way() const { return under_way_.empty(); }

 private:
  void source_opened(std::uint32_t source, const os::SocketAddress& address) override;
  void source_closed(std::uint32_t source, bool died) override;
  bool arriving(const link::Arrival& arrival) override;
  void arrived(const link::Arrival& arrival) override;
  unsigned room() const override;
  unsigned room_for(std::uint32_t) const override { return room(); }
  bool takes_more_urgently(std::uint32_t) const override;
  void received(void* cookie, int error) override;
  void accessed(std::uint32_t source, Access access, std::span<const RegionKey> regions) override;
  void refused(std::uint32_t source, const char* operation, const RefusedAccess& access) override;
  void withdrawn(const link::Offer& offer) override;
  void event(const link::Arrival& arrival);
  void remote_access(const link::Arrival& arrival);
  void datagram(const link::Arrival& arrival);
  void keep_datagram(const link::Arrival& arrival);
  void leave_under_way(Receive& receive);
  bool takes_datagrams() const { return setup_.service == link::Service::kDatagram; }
  // Inlined where they are called: what they hand on stays in registers.
  [[gnu::always_inline]] bool deliver(Receive& receive, const link::Arrival& arrival,
                                      const MatchInfo& taken);
  static int finish_staged(const Receive& receive, const MatchInfo& taken);
  [[gnu::always_inline]] void finish(Receive& receive, const MatchInfo& taken, int error);

  const Bindings bindings_;
  const EndpointSetup& setup_;
  ReceiveQueue& queue_;
  EndpointPort& port_;
  PeerFlows& flows_;
  DatagramService& datagrams_;
  ConnectedPeer& peer_;
  std::size_t takes_under_way_ = 0;  // how many the next one has
  Receives under_way_;               // matched, by messages that take a while
  bool withdrawn_ = false;           // begin_closing()
  bool silent_ = false;              // the same, without reports
};

}  // namespace weft::messaging
