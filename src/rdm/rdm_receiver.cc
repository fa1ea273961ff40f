// SPDX-License-Identifier: BSD-2-Clause
// How does an endpoint receive from one peer over the network?
#include "rdm_receiver.h"

#include <algorithm>
#include <utility>

#include "flow_table.h"
#include "paired_flows.h"
#include "shared.h"

namespace weft::rdm {
namespace {

// Packets without AckReq are acknowledged that much later: well below the peer's retransmission
// timeout.
constexpr auto kLazily = std::chrono::microseconds(200);
constexpr unsigned kAnswersAtOnce = 128;

transport::Settings settings_for(const Introduction& other, const FlowReply& reply, Stats& stats) {
  transport::Settings settings;
  settings.stats = &stats;
  settings.kind = wire::Transport::kReliableDatagram;
  settings.destination = other.queue_pair;
  settings.source = reply.me.queue_pair;
  settings.context = other.context;
  settings.queue_key = other.queue_key;
  settings.path_mtu = reply.me.path_mtu;
  settings.first_expected = reply.first;
  settings.selective = true;
  settings.rnr_timer = 14;
  return settings;
}

bool is_access(const wire::Packet& request) {
  const wire::Operation operation = wire::operation_of(request.opcode);
  return operation >= wire::Operation::kWriteFirst && operation <= wire::Operation::kReadRequest;
}

}  // namespace

RdmReceiver::RdmReceiver(Shared& shared, const Introduction& other, const FlowReply& reply,
                         cm::ConnectionId connection, const RequestSource& source)
    : shared_(shared),
      context_(reply.me.context),
      first_(reply.first),
      pair_(source.pair != 0 ? connection : 0),
      connection_(source.pair != 0 ? 0 : connection),
      last_received_(shared.now),
      packets_(shared.packet_memory),
      target_(shared, source),
      responder_(settings_for(other, reply, shared.stats), target_, &packets_) {}

void RdmReceiver::take(const wire::Packet& request, os::Time now) {
  if (target_.is_shut()) return;
  last_received_ = now;
  if (target_.discards() && is_access(request)) [[unlikely]]
    return;
  if (!proven_ && !request.psn.before(first_)) [[unlikely]]
    prove(now);
  target_.begin_packet(request.payload.data(), path_mtu(), now);
  responder_.take(request, now);
  target_.end_packet();
}

os::Time RdmReceiver::due() const {
  if (responder_.ready()) return os::Time::min();
  const os::Time since = responder_.unanswered_since();
  return since == os::Time::max() ? since : since + kLazily;
}

void RdmReceiver::emit(bool all, os::Time now) {
  const os::Time since = responder_.unanswered_since();
  const bool late = since != os::Time::max() && now - since >= kLazily;
  if (late || all) responder_.answer_all();
  for (unsigned sent = 0; sent < kAnswersAtOnce && responder_.ready(); ++sent) {
    const std::span<std::byte> place = shared_.output.place();
    if (place.empty()) return;
    const std::size_t length = responder_.next(place);
    if (length == 0) return;
    shared_.output.add(path(), length);
  }
}

void RdmReceiver::prove(os::Time now) {
  proven_ = true;
  shared_.agent.established(connection(), now);
  if (pair_ != 0) shared_.pairs->establish(context_);
  if (previous_ != 0) shared_.agent.abandon(std::exchange(previous_, 0), now);
}

// Packets of the old size may still be on their way: they prove nothing.
FlowReply RdmReceiver::change(const FlowRequest& request, cm::ConnectionId connection) {
  if (!proven_) prove(shared_.now);
  previous_ = std::exchange(connection_, connection);
  proven_ = false;
  first_ = request.first;
  std::size_t most = path_mtu();
  if (request.me.path_mtu > most) {  // the path may carry more again
    most = std::max(shared_.flows->path_mtu_to(path().to), most);
  }
  FlowReply reply;
  reply.me = shared_.me;
  reply.me.context = context_;
  reply.me.path_mtu = std::min(request.me.path_mtu, most);
  reply.first = responder_.restart(request.first, reply.me.path_mtu);
  return reply;
}

bool RdmReceiver::forget(cm::ConnectionId connection) {
  if (connection == previous_) previous_ = 0;
  if (connection != connection_) return false;
  connection_ = 0;
  return true;
}

void RdmReceiver::disconnect(const FlowEnd& end) {
  if (previous_ != 0) shared_.agent.abandon(std::exchange(previous_, 0), shared_.now);
  if (connection_ == 0) return;
  shared_.agent.disconnect(std::exchange(connection_, 0), write_end(end), shared_.host.now());
}

void RdmReceiver::abandon() {
  for (cm::ConnectionId* id : {&previous_, &connection_}) {
    if (*id != 0) shared_.agent.abandon(std::exchange(*id, 0), shared_.now);
  }
}

}  // namespace weft::rdm
