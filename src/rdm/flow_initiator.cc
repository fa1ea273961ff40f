// SPDX-License-Identifier: BSD-2-Clause
// What does the requesting end of a flow know of its peer, and when does it send a REQ?
#include "flow_initiator.h"

#include <algorithm>
#include <utility>

#include "shared.h"

namespace weft::rdm {
namespace {

constexpr auto kFirstPause = std::chrono::milliseconds(2);  // between two REQs
// Where hundreds of endpoints begin flows to all others, REQs must not take the time that their
// answers need. But some have to be left when a wire that was cut for a second carries again.
constexpr auto kLongestPause = std::chrono::milliseconds(500);

}  // namespace

FlowInitiator::FlowInitiator(Shared& shared, std::uint32_t context,
                             std::shared_ptr<const roce::Path> path)
    : shared_(shared),
      context_(context),
      connection_id_(static_cast<std::uint32_t>(shared.host.random()) | 1),
      path_(std::move(path)),
      pause_(kFirstPause) {}

void FlowInitiator::open(const Introduction& other) {
  phase_ = FlowPhase::kOpen;
  other_ = other;
  early_data_ = {};  // the REP acknowledges them
}

void FlowInitiator::end(link::PeerState state) {
  phase_ = FlowPhase::kLost;
  peer_state_ = state;
}

void FlowInitiator::limit_asking() {
  if (phase_ == FlowPhase::kAsking && !asks_for_)
    asks_for_ = shared_.options.device->connect_timeout;
}

bool FlowInitiator::takes_early_data() const {
  return phase_ == FlowPhase::kAsking && !has_asked() && !has_early_data();
}

ConnReq FlowInitiator::next_req(os::Time now) {
  ConnReq req;
  req.me = shared_.me;
  req.me.connection_id = connection_id_;
  req.me.context = context_;
  req.name = shared_.options.name;
  req.service = shared_.options.service;
  req.early_data = early_data_;
  if (first_req_ == os::Time{}) first_req_ = now;
  os::Time::duration pause = pause_;
  if (asks_for_ && !persisting_ && phase_ == FlowPhase::kAsking) {
    pause = std::min(pause, *asks_for_);
    *asks_for_ -= pause;
  }
  next_req_ = now + pause;
  pause_ = std::min<std::chrono::milliseconds>(2 * pause_, kLongestPause);
  return req;
}

void FlowInitiator::ask_at_once() {
  next_req_ = {};
  pause_ = kFirstPause;
}

bool FlowInitiator::count_unreachable(bool proven) {
  const bool hopes = phase_ == FlowPhase::kAsking && !persisting_ && !doubting_;
  return phase_ != FlowPhase::kLost && !hopes && life_.count_unreachable(proven);
}

bool FlowInitiator::has_sent(const wire::Packet& request) const {
  return is_open() && wire::layout_of(request.opcode).request &&
         wire::transport_of(request.opcode) == wire::Transport::kReliableDatagram &&
         request.end_to_end_context == other_.context && request.queue_key == other_.queue_key;
}

}  // namespace weft::rdm
