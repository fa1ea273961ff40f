// SPDX-License-Identifier: BSD-2-Clause
// How large are the packets of a flow, when the path carries less, or more again?
#include "flow_mtu.h"

#include <algorithm>

#include "flow_table.h"
#include "shared.h"

namespace weft::rdm {

FlowMtu::FlowMtu(Shared& shared, FlowInitiator& flow, std::size_t path_mtu)
    : shared_(shared), flow_(flow), path_mtu_(path_mtu), carries_(path_mtu) {}

std::size_t FlowMtu::agree_first(std::size_t path_mtu) {
  carries_ = path_mtu_ = std::min(path_mtu_, path_mtu);
  return path_mtu_;
}

void FlowMtu::narrow(std::size_t path_mtu, transport::Requester* requester) {
  if (path_mtu >= carries_) return;
  carries_ = path_mtu;
  if (requester != nullptr) change(*requester);
}

void FlowMtu::change(transport::Requester& requester) {
  if (std::exchange(changing_, true)) return;
  raise_at_ = os::Time::min();
  requester.pause();
  flow_.ask_for_change(carries_, requester.unused(), shared_.host.now());
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

bool FlowMtu::agree(const FlowReply& reply, transport::Requester& requester, os::Time now) {
  changing_ = false;
  if (!requester.restart(reply.first, reply.me.path_mtu, now)) return false;
  path_mtu_ = reply.me.path_mtu;
  carries_ = std::min(carries_, path_mtu_);
  shared_.flows->emission().activate(flow_.context());
  if (carries_ < path_mtu_) change(requester);
  return true;
}

}  // namespace weft::rdm
