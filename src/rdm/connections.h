// SPDX-License-Identifier: BSD-2-Clause
// How do the flows of an endpoint begin and end by its connection manager?
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "cm/agent.h"
#include "flow_table.h"
#include "roce/packet_handler.h"

namespace weft::rdm {

// The reason for which a REQ is rejected before it reaches its user; nothing when it is valid.
std::optional<wire::CmReason> refusal_of(const std::optional<FlowRequest>& request,
                                         const os::SocketAddress& sender, Stats& stats);
// What a REJ or DREQ says of a flow's end.
FlowEnd end_of(const wire::CmMad* mad);

// Connects an endpoint with the connection manager of its port, and is the user of the connections
// of single flows, one each. One thread at a time.
class FlowConnections final : cm::User {
 public:
  FlowConnections(Shared& shared, FlowTable& flows);

  // Asks for a flow by the end of that context. 0 when no communication id is free.
  cm::ConnectionId connect(const cm::ConnectRequest& request, std::uint32_t context, os::Time now);
  // Probes the peer of a flow; an answer counts as its sign of life.
  void probe(const FlowInitiator& flow, os::Time now);
  // Answers a SIDR_REQ: the service is one of connections.
  void refuse_query(cm::ConnectionId query);
  // The address that the message being taken came to; any address when there is none.
  os::SocketAddress asked() const {
    return arrival_ != nullptr ? arrival_->to : os::SocketAddress();
  }
  // An answer goes from the address that the packet came to.
  Result<std::shared_ptr<const roce::Path>> path_to(const os::SocketAddress& peer);

  // Sends a message of the manager.
  void send(const os::SocketAddress& to, std::span<const std::byte> message);
  // A packet for queue pair 1.
  void take(const roce::PacketArrival& arrival);
  // A request came for a flow that is not known: it draws a REJ within the limits of the agent.
  void reject_unknown(const roce::PacketArrival& arrival);
  // An ICMP port unreachable, which may be forged.
  void suspect(const os::SocketAddress& peer);

  // Repeats messages and ends what is overdue.
  void advance() {
    if (shared_.agent.due() <= shared_.now) shared_.agent.advance(shared_.now);
  }
  // Reports what has become of connections. Within a poll.
  void report() {
    if (has_events()) shared_.agent.deliver(cm::Carrier::kPackets);
  }
  // When there is something to do.
  os::Time due() const { return has_events() ? os::Time::min() : shared_.agent.due(); }

 private:
  bool has_events() const { return shared_.agent.has_events(cm::Carrier::kPackets); }
  void handle(const cm::CmEvent& event) override;
  Time last_received(cm::ConnectionId id, void* context) override;

  void on_request(const cm::CmEvent& event);
  std::optional<wire::CmReason> accept(const cm::CmEvent& event, const FlowRequest& request);
  std::optional<wire::CmReason> change(const cm::CmEvent& event, const FlowRequest& request);
  bool has_room_for(const os::SocketAddress& peer);
  void accept(const cm::CmEvent& event, RdmReceiver& in, const FlowReply& reply);
  void on_established(RdmReceiver& in, cm::ConnectionId id);
  void on_event(RdmSender& out, const cm::CmEvent& event);
  void on_event(RdmReceiver& in, const cm::CmEvent& event);
  void on_end(RdmReceiver& in, const cm::CmEvent& event);

  Shared& shared_;
  FlowTable& flows_;
  const roce::PacketArrival* arrival_ = nullptr;  // that is being taken
  std::vector<std::uint32_t> probing_;            // contexts of flows that await a sign of life
};

}  // namespace weft::rdm
