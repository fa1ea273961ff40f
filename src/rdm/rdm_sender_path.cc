// SPDX-License-Identifier: BSD-2-Clause
// How large are the packets of a flow, when the way to the peer carries less, or more again?
#include <algorithm>
#include <utility>

#include "flow_table.h"
#include "rdm_sender.h"
#include "shared.h"

namespace weft::rdm {

void RdmSender::narrow(std::size_t path_mtu) {
  if (path_mtu >= carries_) return;
  carries_ = path_mtu;
  wants_more_ = false;
  raise_at_ = os::Time::min();
  if (state_ != Phase::kOpen) return;
  requester_->hold();
  next_req_ = {};
  pause_ = kFirstPause;
  shared_.flows->emission().activate(*this);
}

// A router that drops large packets need not report it.
void RdmSender::look_for_hole(os::Time now) {
  if (requester_->deadline() <= now) {
    requester_->tick(now);
    if (requester_->pmtu_probing()) send_req(now);
  }
  if (requester_->pmtu_black_hole() && carries_ > transport::kSurePathMtu) {
    shared_.flows->narrow(peer(), transport::kSurePathMtu);
  }
}

// A forged ICMP error must not slow a flow down for as long as it lives, nor a path that was poor
// for a while. The system is asked first, which keeps what routers reported for 10 minutes: what it
// refuses is not tried. If larger packets get lost all the same, that is noticed as before.
void RdmSender::look_for_more(os::Time now) {
  if ((now < raise_at_ && !wants_more_) || raising_ || narrows()) return;
  if (raise_at_ == os::Time::min()) raise_at_ = now + shared_.options.raise_interval;
  if (!wants_more_) {
    if (now < raise_at_) return;
    raise_at_ = now + shared_.options.raise_interval;
    if (shared_.flows->path_mtu_to(peer()) <= path_mtu_) return;
    wants_more_ = true;
    requester_->hold();
  }
  if (requester_->has_begun()) return;
  wants_more_ = false;
  raising_ = true;
  ++raises_;
  carries_ = std::max(carries_, shared_.flows->path_mtu_to(peer()));
  next_req_ = {};
  pause_ = kFirstPause;
}

// What answers an older question says nothing: the peer may have agreed to the newer one since.
void RdmSender::agreed(const ConnRep& rep) {
  if (rep.raises != raises_) return;
  const bool raised = std::exchange(raising_, false);
  if (raised) {
    path_mtu_ = rep.path_mtu;
    peer_carries_ = rep.me.path_mtu;
    carries_ = std::min(carries_, path_mtu_);
  }
  narrow(rep.me.path_mtu);
  peer_carries_ = std::min(peer_carries_, rep.me.path_mtu);
  const bool narrowed = may_narrow() && rep.path_mtu == carries_;
  if (!narrowed && (!raised || narrows())) return;
  path_mtu_ = carries_;
  requester_->go_on_with(path_mtu_);
  bundle_room_ = path_mtu_;
  shared_.flows->emission().activate(*this);
}

}  // namespace weft::rdm
