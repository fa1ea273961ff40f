// SPDX-License-Identifier: BSD-2-Clause
// What does an endpoint answer to messages of its peers' connection managers?
#include "connections.h"

#include <vector>

#include "wire/packet.h"

namespace weft::rdm {
namespace {

// Flows that one peer may have: it needs one, and another one while the first is being forgotten.
constexpr std::size_t kMostOfOnePeer = 16;
constexpr auto kBetweenRejections = std::chrono::microseconds(200);

}  // namespace

bool Connections::take(const roce::PacketArrival& arrival) {
  if (arrival.packet.queue_key != wire::kCmQueueKey) {
    shared_.stats.add(Stat::kQkeyViolations);
    return false;
  }
  const auto message = read_conn_message(arrival.packet.payload);
  if (!message) {
    shared_.stats.add(Stat::kMalformedPackets);
    return false;
  }
  const auto back = flows_.path_between(arrival.to, arrival.from);
  if (const auto* req = std::get_if<ConnReq>(&*message)) {
    on_req(*req, *back);
  } else if (const auto* rep = std::get_if<ConnRep>(&*message)) {
    on_rep(*rep, *back);
  } else if (const auto* rej = std::get_if<ConnRej>(&*message)) {
    on_rej(*rej, *back);
  } else {
    on_disconnect(std::get<Disconnect>(*message), *back);
  }
  return true;
}

void Connections::reject_unknown(std::uint32_t context, const roce::PacketArrival& arrival) {
  if (shared_.now < next_rejection_) return;
  next_rejection_ = shared_.now + kBetweenRejections;
  const auto path = flows_.path_between(arrival.to, arrival.from);
  flows_.emission().send_cm(*path, ConnRej{ConnRej::Why::kUnknown, 0, context});
}

void Connections::reject(const ConnReq& req, ConnRej::Why why, const roce::Path& back) {
  flows_.emission().send_cm(back, ConnRej{why, req.me.connection_id, 0});
}

void Connections::on_rep(const ConnRep& rep, const roce::Path& back) {
  RdmSender* out = flows_.out_to(back.to);
  if (out == nullptr || !out->on_rep(rep, shared_.now)) return;
  for (RdmReceiver* in : flows_.in_from(back.to)) {
    if (in->station() != out->flow().other().station) continue;
    in->life().hear(shared_.now);
    if (in->suggest(out->carries())) flows_.emission().send_cm(in->path(), in->rep());
  }
}

// The REP was lost, or the REQ is a keepalive.
void Connections::on_repeated_req(RdmReceiver& in, const ConnReq& req, const roce::Path& back) {
  in.life().hear(shared_.now);
  RdmSender* out = flows_.out_to(back.to);
  if (out != nullptr && out->flow().other().station == in.station()) {
    out->hear(shared_.now);
    if (req.changes == in.rep().changes) out->narrow(req.me.path_mtu);
  }
  in.agree(req);
  if (!in.target().is_shut()) return flows_.emission().send_cm(back, in.rep());
  reject(req, ConnRej::Why::kUnwanted, back);
}

// A peer begins a flow to this end.
void Connections::on_req(const ConnReq& req, const roce::Path& back) {
  if (req.service != shared_.options.service) return reject(req, ConnRej::Why::kNoService, back);
  if (req.me.station == 0) {  // names no endpoint
    shared_.stats.add(Stat::kMalformedPackets);
    return;
  }
  const std::vector<RdmReceiver*> known = flows_.in_from(back.to);
  RdmReceiver* oldest = nullptr;
  for (RdmReceiver* in : known) {
    if (oldest == nullptr || in->life().heard() < oldest->life().heard()) oldest = in;
    if (in->req().me.connection_id == req.me.connection_id) return on_repeated_req(*in, req, back);
    // The endpoint that had this address before is gone.
    if (in->station() != req.me.station) {
      flows_.close_source(*in, true);
      oldest = nullptr;
      break;
    }
  }
  if (known.size() >= kMostOfOnePeer && oldest != nullptr) flows_.close_source(*oldest, false);
  if (!flows_.contexts().has_room()) return;
  if (!req.early_data.empty() && !shared_.sink->takes_more()) {
    if (shared_.closing) reject(req, ConnRej::Why::kUnwanted, back);
    return;  // the REQ will be repeated
  }
  flows_.open_in(req, back);
}

void Connections::on_rej(const ConnRej& rej, const roce::Path& back) {
  RdmSender* out = flows_.out_to(back.to);
  if (out == nullptr) return;
  switch (rej.why) {
    case ConnRej::Why::kUnknown:
      if (out->flow().is_open() && out->flow().other().context == rej.context) {
        out->lose(link::PeerState::kDied);
      }
      return;
    case ConnRej::Why::kUnwanted:
      if (out->flow().connection_id() == rej.connection_id) out->lose(link::PeerState::kRefuses);
      return;
    case ConnRej::Why::kNoService:  // another process may bind the address later
      if (out->flow().connection_id() == rej.connection_id && out->flow().persists() &&
          out->flow().phase() == FlowPhase::kAsking) {
        out->lose(link::PeerState::kDied);
      }
      return;
  }
}

void Connections::on_disconnect(const Disconnect& disconnect, const roce::Path& back) {
  if (disconnect.answer) return;
  flows_.emission().send_cm(back, Disconnect{true, disconnect.receiver_id, disconnect.sender_id});
  RdmSender* out = flows_.out_to(back.to);
  if (out != nullptr && out->flow().connection_id() == disconnect.receiver_id &&
      out->flow().other().connection_id == disconnect.sender_id) {
    return out->part(disconnect.expected, shared_.now);
  }
  for (RdmReceiver* in : flows_.in_from(back.to)) {
    const std::uint32_t connection_id = in->rep().me.connection_id;
    const bool meant = disconnect.receiver_id == connection_id || disconnect.receiver_id == 0;
    if (meant && in->req().me.connection_id == disconnect.sender_id)
      return flows_.close_source(*in, false);
  }
}

}  // namespace weft::rdm
