// SPDX-License-Identifier: BSD-2-Clause
// How do endpoints of reliable datagrams speak to each other by packets?
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "base/result.h"
#include "base/stats.h"
#include "link/flow.h"
#include "link/inbox.h"
#include "os/clock.h"
#include "rdm/host.h"
#include "rdm/options.h"
#include "rdm/port_connections.h"
#include "roce/packet_handler.h"

namespace weft::rdm {

class FlowTable;
class RdmSender;
class FlowConnections;
class PairedFlows;
struct Shared;
struct Context;

// The flows of one endpoint, to and from all its peers: libfabric's reliable datagrams as RoCEv2
// packets with RD opcodes (IBTA 9.8, annex A17), which the messages of message.h go in. It knows
// neither sockets nor clocks: its host moves the packets and says what time it is. Between Weft's
// endpoints only. One thread at a time; flows are destroyed before their engine.
class RdmEngine final : public roce::PacketHandler {
 public:
  // What the host is: its queue pair, and the bytes of packets that it can take in unread.
  struct LocalEnd {
    std::uint32_t queue_pair = 0;
    std::uint32_t room = 0;
  };
  // A link of `port`, whose connection manager its packets are for. Packets are counted in `stats`.
  // Host, port and stats outlive the engine.
  RdmEngine(Host& host, PortConnections& port, const RdmOptions& options, const LocalEnd& identity,
            Stats& stats);
  ~RdmEngine();
  RdmEngine(const RdmEngine&) = delete;
  RdmEngine& operator=(const RdmEngine&) = delete;

  // The flow to the endpoint at `peer`. What is asked for before it has answered stays pending, and
  // ends with EHOSTUNREACH when it does not answer in time. Errors: EHOSTUNREACH, ENETUNREACH and
  // others of Host::path_to(), EUSERS.
  Result<std::unique_ptr<link::Flow>> connect(const os::SocketAddress& peer);

  // What link::Inbox says of these.
  unsigned poll(link::InboxSink& sink);
  void accept(link::InboxSink& sink, const link::Offer& offer, std::span<const LocalRange> sges,
              std::uint64_t length, void* cookie);
  void acknowledge(const link::Offer& offer);
  void refuse(link::InboxSink& sink, std::uint32_t source);
  void check_sources(link::InboxSink& sink);
  link::Inbox::Activity activity() const;

  // Sends what can be delayed otherwise, and returns when poll() has something to do, if nothing
  // comes before: a time that is over when there is something now.
  os::Time fall_asleep();
  // A receive has ended that the next poll() will tell of.
  bool has_ended_receives() const;

  // Takes no message in any more, and writes nothing to buffers of receives.
  void begin_closing();
  // Nothing that was asked for is under way any more.
  bool quiet() const;
  // Tells all peers that the endpoint ends.
  void disconnect_all(link::InboxSink& sink);

  // From within Host::receive().
  void take(const roce::PacketArrival& arrival) override;
  void take_cnp(const roce::PacketArrival& arrival) override;
  void path_changed(const os::SocketAddress& peer) override;
  void unreachable(const os::UdpError& error) override;

 private:
  void settle();
  void take_of_flow(const wire::Packet& packet, const roce::PacketArrival& arrival);
  void take_mark(const Context& context, bool request);
  void report_received();

  const std::unique_ptr<Shared> shared_;
  const std::unique_ptr<FlowTable> flows_;
  const std::unique_ptr<FlowConnections> connections_;
  const std::unique_ptr<PairedFlows> pairs_;
  std::uint32_t touched_ = 0;  // number of the context that has got packets
};

}  // namespace weft::rdm
