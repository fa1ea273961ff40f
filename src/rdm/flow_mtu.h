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

  // What the path carries now.
  std::size_t carries() const { return carries_; }
  // The flow opens with that path MTU at most. Returns its path MTU, which the path carries until
  // narrow().
  std::size_t agree_first(std::size_t path_mtu);
  // The flow pauses until the peer has agreed on another path MTU.
  bool changes() const { return changing_; }

  // The path carries no more than that. With a requester, which the flow has once it is open, both
  // ends agree on smaller packets.
  void narrow(std::size_t path_mtu, transport::Requester* requester);
  // Looks for larger packets when it is time to.
  void look_for_more(transport::Requester& requester, os::Time now);
  // The REP to a change. False when it makes no sense.
  bool agree(const FlowReply& reply, transport::Requester& requester, os::Time now);

 private:
  void change(transport::Requester& requester);

  Shared& shared_;
  FlowInitiator& flow_;
  std::size_t path_mtu_;                 // of the flow
  std::size_t carries_;                  // the path to the peer
  os::Time raise_at_ = os::Time::min();  // when larger packets are tried; min: not decided yet
  bool changing_ = false;                // the peer was asked for another path MTU
};

}  // namespace weft::rdm
