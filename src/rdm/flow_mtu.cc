// SPDX-License-Identifier: BSD-2-Clause
// How large are the packets of a flow, when the path carries less, or more again?
#include "flow_mtu.h"

#include <algorithm>
#include <utility>

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
  wants_more_ = false;
  raise_at_ = os::Time::min();
  if (requester == nullptr) return;
  requester->hold();
  flow_.ask_at_once();
  shared_.flows->emission().activate(flow_.context());
}

// A forged ICMP error must not slow a flow down for as long as it lives, nor a path that was poor
// for a while. The system is asked first, which keeps what routers reported for 10 minutes: what it
// refuses is not tried. If larger packets get lost all the same, that is noticed as before.
void FlowMtu::look_for_more(transport::Requester& requester, os::Time now) {
  if ((now < raise_at_ && !wants_more_) || raising_ || narrows()) return;
  if (raise_at_ == os::Time::min()) raise_at_ = now + shared_.options.raise_interval;
  if (!wants_more_) {
    if (now < raise_at_) return;
    raise_at_ = now + shared_.options.raise_interval;
    if (shared_.flows->path_mtu_to(flow_.peer()) <= path_mtu_) return;
    wants_more_ = true;
    requester.hold();
  }
  if (requester.has_begun()) return;
  wants_more_ = false;
  raising_ = true;
  ++raises_;
  carries_ = std::max(carries_, shared_.flows->path_mtu_to(flow_.peer()));
  flow_.ask_at_once();
}

// An answer to an older REQ says nothing: the peer may have agreed to the newer one since.
void FlowMtu::agree(const ConnRep& rep, transport::Requester& requester) {
  if (rep.raises != raises_) return;
  const bool raised = std::exchange(raising_, false);
  if (raised) {
    path_mtu_ = rep.path_mtu;
    peer_carries_ = rep.me.path_mtu;
    carries_ = std::min(carries_, path_mtu_);
  }
  narrow(rep.me.path_mtu, &requester);
  peer_carries_ = std::min(peer_carries_, rep.me.path_mtu);
  const bool narrowed = may_narrow(requester) && rep.path_mtu == carries_;
  if (!narrowed && (!raised || narrows())) return;
  path_mtu_ = carries_;
  requester.go_on_with(path_mtu_);
  shared_.flows->emission().activate(flow_.context());
}

void FlowMtu::write(ConnReq& req, const transport::Requester* requester) const {
  req.me.path_mtu = carries_;
  const bool another = raising_ || (requester != nullptr && may_narrow(*requester));
  req.path_mtu = another ? carries_ : path_mtu_;
  req.raises = raises_;
}

}  // namespace weft::rdm
