// SPDX-License-Identifier: BSD-2-Clause
// Which flows does an endpoint have with which peers, and when do they end?
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "base/result.h"
#include "contexts.h"
#include "emission.h"
#include "peer_table.h"
#include "roce/path_cache.h"
#include "shared.h"
#include "source_numbers.h"

namespace weft::rdm {

// How packets reach a peer.
struct PeerPath {
  std::shared_ptr<const roce::Path> path;
  std::size_t path_mtu = 0;  // as far as is known
};

// The flows of one endpoint, by peer and by the inbox's numbers of sources. One thread at a time.
class FlowTable {
 public:
  explicit FlowTable(Shared& shared);

  Contexts& contexts() { return contexts_; }
  const Contexts& contexts() const { return contexts_; }
  Emission& emission() { return emission_; }
  const Emission& emission() const { return emission_; }
  SourceNumbers& sources() { return sources_; }

  // The flow to the endpoint at an address, if there is one that was not lost; those from there.
  // Neither belongs to a pair.
  RdmSender* out_to(const os::SocketAddress& peer) const;
  std::vector<RdmReceiver*> in_from(const os::SocketAddress& peer) const;
  // Calls visit(RdmSender&) for each flow to that address that was not lost, also those of pairs.
  template <class Visit>
  void each_out(const os::SocketAddress& peer, Visit visit) const {
    if (RdmSender* out = out_to(peer)) visit(*out);
    const auto found = peers_.find(peer);
    if (found == peers_.end()) return;
    for (const std::uint32_t number : found->second.pairs) {
      RdmSender* const out = contexts_.find(number)->out.get();
      if (out != nullptr && out->flow().is_open()) visit(*out);
    }
  }
  // The flow from the source of that number.
  RdmReceiver* source(std::uint32_t number) const;

  // Begins a flow to a peer, or returns the one that there is.
  Result<RdmSender*> open_out(const os::SocketAddress& peer);
  // Begins the flow that a peer has asked for, and says what to answer, with the path MTU that the
  // peer knows: a REQ may be forged, and asking the system takes several system calls.
  RdmReceiver& open_in(const FlowRequest& request, const cm::CmEvent& event,
                       std::shared_ptr<const roce::Path> path, FlowReply& reply);
  // A pair of flows with the peer at the end of that path shares what is known of the path.
  void add_pair(const std::shared_ptr<const roce::Path>& path, std::uint32_t context);
  void remove_pair(const os::SocketAddress& peer, std::uint32_t context);
  // The flow from a peer that is to continue, if it has the connection that is to be replaced. It
  // may belong to a pair.
  RdmReceiver* find_in(const os::SocketAddress& peer, const Continued& flow) const;
  // The work queue of the flow to that source: the other one of the pair, or one that is made when
  // it is first needed.
  WorkQueue& return_path(const RequestSource& source);
  // That peer has so many answers to acknowledge that it may ask for nothing more
  // (Operations::may_answer).
  bool owes_too_much(const RequestSource& source) const;
  // Ends the flow from a peer, which gets a DREQ.
  void close_source(RdmReceiver& receiver, bool died);
  // Takes nothing more from that peer, which gets a DREQ. The flow is destroyed after the poll.
  void refuse(RdmReceiver& receiver);
  // Closes the refused sources, and those of dead peers. A peer that counts as dead gets no answers
  // any more; the DREQ ends its waiting operations.
  void close_leaving();
  // Tells all peers that the endpoint ends.
  void disconnect_all();
  // Flows without use since the last call end.
  void tidy_up();
  // Gives the memory of flows at rest and of expired paths back.
  void trim() {
    contexts_.trim();
    recent_paths_.trim(shared_.now);
  }

  // Flows of one peer have one path, so that their packets share trains.
  std::shared_ptr<const roce::Path> path_between(const os::SocketAddress& from,
                                                 const os::SocketAddress& to);
  // The one that flows to that peer have, or else the system's, as it was a moment ago
  // (roce::PathCache).
  Result<std::shared_ptr<const roce::Path>> path_to(const os::SocketAddress& peer);
  // The same for a new flow, with what the system and other flows know of its path MTU.
  Result<PeerPath> path_of_flow(const os::SocketAddress& peer);
  // The path to the peer carries no more than that: so it is for all flows between both.
  void narrow(const os::SocketAddress& peer, std::size_t path_mtu);
  // The path MTU to a peer, as the system knows it; the least one where there is no path.
  std::size_t path_mtu_to(const os::SocketAddress& peer) const;
  // The system may know that the path to the peer carries less.
  void look_at_path(const os::SocketAddress& peer);
  // Of that path MTU, what the flows to and from that peer know of the path by now. Those of pairs
  // know the same.
  std::size_t carries(const os::SocketAddress& peer, std::size_t path_mtu) const;

 private:
  std::shared_ptr<const roce::Path> known_path(const os::SocketAddress& peer) const;
  std::shared_ptr<const roce::Path> new_path(const os::UdpPath& path,
                                             const os::SocketAddress& peer);
  void forget(const os::SocketAddress& peer);
  void close(Context& context);

  Shared& shared_;
  Contexts contexts_{shared_};
  Emission emission_;
  PeerTable peers_;
  roce::PathCache recent_paths_;
  std::uint32_t discarding_ = 0;  // context of what cannot be sent
  SourceNumbers sources_{shared_.options.first_source};
};

}  // namespace weft::rdm
