// SPDX-License-Identifier: BSD-2-Clause
// How do the connections of an endpoint's programs begin and end?
#pragma once

#include <unordered_map>
#include <vector>

#include "connections.h"
#include "flow_table.h"
#include "rdm/port_connections.h"

namespace weft::rdm {

// The pairs of flows of an endpoint: the connections of its port over packets. One thread at a
// time.
//
// A change of the path MTU gives one direction a connection of its own (flow_message.h), which
// lives as long as that of the pair. The end of any of them ends the pair.
class PairedFlows final : public LinkConnections, cm::User {
 public:
  PairedFlows(Shared& shared, FlowTable& flows, FlowConnections& manager);

  Result<link::ConnectionNumber> request(const os::SocketAddress& listener,
                                         std::span<const std::byte> data,
                                         link::ConnectionUser& user) override;
  Result<link::ConnectionNumber> accept(const link::ConnectionRequest& request,
                                        std::span<const std::byte> data,
                                        link::ConnectionUser& user) override;
  // An open connection ends at the end of a poll: as soon as the peer has all that was sent, and
  // after 2 s at the latest. Messages of the peer are dropped meanwhile, and its accesses are not
  // answered. source_closed() is not called for its source.
  bool disconnect(link::ConnectionNumber number) override;
  void on_request(const cm::CmEvent& event, link::ListenerUser& listener) override;
  void send(const os::SocketAddress& to, cm::ConnectionId,
            std::span<const std::byte> message) override {
    manager_.send(to, message);
  }
  os::Time now() override { return shared_.host.now(); }

  // A request of the pair of that context has arrived: the peer has the REP.
  void establish(std::uint32_t context);
  // That pair may have to end, or to be forgotten.
  void note(std::uint32_t context);
  // As link::Inbox::refuse(), but the end is reported to sink and user within the next poll.
  void refuse(const RdmReceiver& in);
  // Ends pairs. At the end of a poll.
  void settle();
  // When there is something to do.
  os::Time due() const;
  // Disconnects all pairs: the endpoint ends.
  void disconnect_all();

 private:
  void handle(const cm::CmEvent& event) override;
  Time last_received(cm::ConnectionId id, void* context) override;

  Context& add(const PeerPath& peer_path, link::ConnectionUser& user);
  link::ConnectionNumber name(Context& context, cm::ConnectionId id);
  void remove(Context& context);
  void end_by_user(Context& context);
  FlowReply introduce(const Context& context) const;
  void on_reply(Context& context, const cm::CmEvent& event);
  void on_end(Context& context, const cm::CmEvent& event);
  void open_in(Context& context);
  void open(Context& context, std::span<const std::byte> data);
  void look(Context& context);
  void finish(Context& context);
  void end_connection(Context& context);

  Shared& shared_;
  FlowTable& flows_;
  FlowConnections& manager_;
  std::unordered_map<link::ConnectionNumber, std::uint32_t> contexts_;  // of the users' connections
  std::vector<std::uint32_t> noted_;    // contexts that settle() looks at
  std::vector<std::uint32_t> leaving_;  // the same, again and again; in the order of their ends
};

}  // namespace weft::rdm
