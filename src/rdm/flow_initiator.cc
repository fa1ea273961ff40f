// SPDX-License-Identifier: BSD-2-Clause
// What does the requesting end of a flow know of its peer, and which connections does it have?
#include "flow_initiator.h"

#include <algorithm>
#include <utility>

#include "connections.h"
#include "shared.h"

namespace weft::rdm {
namespace {

// Between two REQs, and two looks for an answer. Where hundreds of endpoints begin flows to all
// others, REQs must not take the time that their answers need. But some have to be left when a wire
// that was cut for a second carries again.
constexpr auto kFirstPause = std::chrono::milliseconds(2);
constexpr auto kLongestPause = std::chrono::milliseconds(500);
// The flow has a limit of its own, which counts time only in which this end looks.
constexpr auto kWithoutLimit = std::chrono::hours(24 * 365);
// So many ICMP errors count before there is a connection that could be probed.
constexpr unsigned kMostUnreachable = 3;

}  // namespace

FlowInitiator::FlowInitiator(Shared& shared, std::uint32_t context,
                             std::shared_ptr<const roce::Path> path, cm::ConnectionId pair)
    : shared_(shared),
      context_(context),
      path_(std::move(path)),
      pair_(pair),
      pause_(kFirstPause) {}

void FlowInitiator::open(const Introduction& other, std::uint64_t identity,
                         std::uint32_t connection) {
  phase_ = FlowPhase::kOpen;
  peer_.endpoint_id = other.endpoint_id;
  identity_ = identity;
  peer_.connection = connection;
}

// The peer of a pair hears of it by the pair's connection.
void FlowInitiator::end(link::PeerState state) {
  pair_ != 0 ? abandon() : disconnect();
  phase_ = FlowPhase::kLost;
  peer_state_ = state;
}

void FlowInitiator::disconnect() {
  const os::Time now = shared_.host.now();
  for (cm::ConnectionId* id : {&next_, &connection_}) {
    if (*id != 0) shared_.agent.disconnect(std::exchange(*id, 0), {}, now);
  }
}

void FlowInitiator::abandon() {
  for (cm::ConnectionId* id : {&next_, &connection_}) {
    if (*id != 0) shared_.agent.abandon(std::exchange(*id, 0), shared_.now);
  }
}

bool FlowInitiator::forget(cm::ConnectionId connection) {
  for (cm::ConnectionId* id : {&next_, &connection_}) {
    if (*id == connection) return *id = 0, true;
  }
  return false;
}

void FlowInitiator::limit_asking() {
  if (phase_ == FlowPhase::kAsking && !asks_for_)
    asks_for_ = shared_.options.device->connect_timeout;
}

FlowRequest FlowInitiator::request_of(std::size_t path_mtu) const {
  FlowRequest request;
  request.me = shared_.me;
  request.me.context = context_;
  request.me.path_mtu = path_mtu;
  request.name = shared_.options.name;
  request.proof =
      prove(shared_.options.authorization, shared_.host.random(), request.me, peer().port());
  return request;
}

cm::ConnectionId FlowInitiator::connect(const FlowRequest& request, std::chrono::nanoseconds limit,
                                        os::Time now) {
  cm::ConnectRequest wanted;
  wanted.to = {peer(), cm::Carrier::kPackets};
  wanted.req = write_request(request);
  wanted.repeats = {kFirstPause, kLongestPause, limit};
  wanted.watched = true;
  return shared_.connections->connect(wanted, context_, now);
}

void FlowInitiator::ask(std::size_t path_mtu, os::Time now) {
  if (next_look_ == os::Time{}) first_req_ = now;
  if (connection_ == 0) connection_ = connect(request_of(path_mtu), kWithoutLimit, now);
  os::Time::duration pause = pause_;
  if (asks_for_) {
    pause = std::min(pause, *asks_for_);
    *asks_for_ -= pause;
  }
  next_look_ = now + pause;
  pause_ = std::min<std::chrono::milliseconds>(2 * pause_, kLongestPause);
}

void FlowInitiator::ask_for_change(std::size_t path_mtu, Psn first, os::Time now) {
  FlowRequest request = request_of(path_mtu);
  request.continued = {identity_, peer_.connection};
  request.first = first;
  next_ = connect(request, shared_.options.device->peer_timeout, now);
}

void FlowInitiator::change(const wire::CmMad& rep) {
  shared_.agent.abandon(std::exchange(connection_, std::exchange(next_, 0)), shared_.now);
  peer_.connection = std::get<wire::CmRep>(rep.message).local_id;
}

bool FlowInitiator::count_unreachable() {
  const bool counts = phase_ == FlowPhase::kAsking && suspected_;
  return counts && ++unreachable_ >= kMostUnreachable;
}

}  // namespace weft::rdm
