// SPDX-License-Identifier: BSD-2-Clause
// How large are the packets of a flow, when the path carries less, or more again?
#pragma once

#include <cstddef>
#include <cstdint>

#include "flow_initiator.h"
#include "transport/requester.h"

namespace weft::rdm {

// The path MTU of the flow of a FlowInitiator, and the agreement on another one
// (docs/design/path_mtu.md). One thread at a time.
class FlowMtu {
 public:
  // `flow` outlives it. The path carries `path_mtu` bytes of payload, as far as is known.
  FlowMtu(Shared& shared, FlowInitiator& flow, std::size_t path_mtu);

  // What the path carries now: the flow may have larger packets in flight.
  std::size_t carries() const { return carries_; }
  // The flow opens with that REP. Returns its path MTU, which the path carries until narrow().
  std::size_t agree_first(const ConnRep& rep);
  // Work waits for packets of another size.
  bool changes() const { return narrows() || wants_more_ || raising_; }

  // The path carries no more than that. With a requester, which the flow has once it is open, new
  // work waits until nothing is in flight; then both ends agree on smaller packets.
  void narrow(std::size_t path_mtu, transport::Requester* requester);
  // Looks for larger packets when it is time to.
  void look_for_more(transport::Requester& requester, os::Time now);
  // The REP to a REQ that write() completed.
  void agree(const ConnRep& rep, transport::Requester& requester);

  // Says in a REQ what the path carries, and which path MTU the flow has or is to have.
  void write(ConnReq& req, const transport::Requester* requester) const;
  // The peer has to hear that the path carries less, or that packets of another size come.
  bool has_to_ask(const transport::Requester& requester) const {
    return raising_ || may_narrow(requester) || peer_carries_ > carries_;
  }

 private:
  bool narrows() const { return carries_ < path_mtu_; }
  bool may_narrow(const transport::Requester& requester) const {
    return narrows() && !requester.has_begun();
  }

  Shared& shared_;
  FlowInitiator& flow_;
  std::size_t path_mtu_;          // of the flow
  std::size_t carries_;           // the path to the peer, which may be less
  std::size_t peer_carries_ = 0;  // as far as the peer knows
  // Larger packets: when the next look is due (min: not decided yet), whether work waits until
  // nothing is in flight, whether the peer was asked, and how often it was.
  os::Time raise_at_ = os::Time::min();
  bool wants_more_ = false;
  bool raising_ = false;
  std::uint8_t raises_ = 0;
};

}  // namespace weft::rdm
