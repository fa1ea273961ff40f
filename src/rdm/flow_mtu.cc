// SPDX-License-Identifier: BSD-2-Clause
// How large are the packets of a flow, when the path carries less, or more again?
#include "flow_mtu.h"

#include <algorithm>

#include "flow_table.h"
#include "shared.h"

namespace weft::rdm {

FlowMtu::FlowMtu(Shared& shared, FlowInitiator& flow, std::size_t path_mtu)
    : shared_(shared), flow_(flow), path_mtu_(path_mtu), carries_(path_mtu) {}

std::size_t FlowMtu::agree_first(const ConnRep& rep) {
  carries_ = path_mtu_ = std::min(path_mtu_, rep.path_mtu);
  peer_carries_ = rep.me.path_mtu;
  return path_mtu_;
}

void FlowMtu::narrow(std::size_t path_mtu, transport::Requester* requester) {
  if (path_mtu >= carries_) return;
  carries_ = path_mtu;
  if (requester != nullptr) change(*requester);
}

void FlowMtu::change(transport::Requester& requester) {
  if (!changing_) ++changes_;
  changing_ = true;
  raise_at_ = os::Time::min();
  requester.pause();
  flow_.ask_at_once();
  shared_.flows->emission().activate(flow_.context());
}

// A forged ICMP error must not slow a flow down for as long as it lives, nor a path that was poor
// for a while. The system is asked first, which keeps what routers reported for 10 minutes: what it
// refuses is not tried. If larger packets get lost all the same, that is noticed as before.
void FlowMtu::look_for_more(transport::Requester& requester, os::Time now) {
  if (now < raise_at_ || changing_) return;
  const bool first = raise_at_ == os::Time::min();
  raise_at_ = now + shared_.options.raise_interval;
  const std::size_t more = first ? 0 : shared_.flows->path_mtu_to(flow_.peer());
  if (more <= path_mtu_) return;
  carries_ = more;
  change(requester);
}

// An answer to an older REQ says nothing: the peer may have agreed to the newer one since.
void FlowMtu::agree(const ConnRep& rep, transport::Requester& requester, os::Time now) {
  if (rep.changes != changes_) return;
  if (changing_) {
    if (!requester.restart(rep.first, rep.path_mtu, now)) return;
    changing_ = false;
    path_mtu_ = rep.path_mtu;
    peer_carries_ = rep.me.path_mtu;
    shared_.flows->emission().activate(flow_.context());
  }
  carries_ = std::min({carries_, path_mtu_, rep.me.path_mtu});
  peer_carries_ = std::min(peer_carries_, rep.me.path_mtu);
  if (carries_ < path_mtu_) change(requester);
}

void FlowMtu::write(ConnReq& req, const transport::Requester* requester) const {
  req.me.path_mtu = carries_;
  req.path_mtu = changing_ ? carries_ : path_mtu_;
  req.changes = changes_;
  if (requester != nullptr) req.first = requester->unused();
}

}  // namespace weft::rdm
