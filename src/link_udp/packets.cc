// SPDX-License-Identifier: BSD-2-Clause
// How do the packets of an endpoint find their channels?
#include <algorithm>
#include <cstring>
#include <utility>

#include "os/runtime_dir.h"
#include "os/udp_path.h"
#include "roce/congestion_notifier.h"
#include "roce/route.h"
#include "station_hub.h"
#include "wire/packet.h"

namespace weft::udp {
namespace {

constexpr unsigned kReadsAtOnce = 4;
// Whole messages are no longer than that, whatever a peer's limit is.
constexpr std::size_t kLongestMessage = 2 * kEagerLimit;
// Flows that one peer may have: it needs one, and another one while the first is being forgotten.
constexpr std::size_t kMostOfOnePeer = 16;
constexpr auto kBetweenRejections = std::chrono::microseconds(200);

// An ICMP error quotes our packet, at least its headers. Treat the peer as dead only if the quote
// is an RD request with its Q_Key, which an off-path attacker cannot guess. A quoted REQ may
// predate the peer's bind.
bool quotes_request(const os::UdpError& error, const RdmSender& out) {
  wire::Packet packet;
  const wire::Malformed what = wire::parse(error.quoted(), packet);
  const bool cut_off = what == wire::Malformed::kPadding || what == wire::Malformed::kPayload;
  return (what == wire::Malformed::kNone || cut_off) && out.has_sent(packet);
}

}  // namespace

unsigned StationHub::receive() {
  const unsigned count = port_->poll(~0U, kReadsAtOnce);
  settle();
  if (port_->emptied()) emptied_ = now_;
  return count;
}

void StationHub::take(const roce::PacketArrival& arrival) {
  if (arrival.packet.destination == wire::kCmQpn) return take_conn_message(arrival);
  const wire::Transport transport = wire::transport_of(arrival.packet.opcode);
  if (transport == wire::Transport::kReliableDatagram) {
    take_of_flow(arrival.packet, arrival);
  } else if (transport == wire::Transport::kUnreliableDatagram) {
    take_fragment(arrival);
  } else {
    ++port_->drops().wrong_queue_pair;
  }
}

// A reassembled packet is handled like one that arrived whole.
void StationHub::take_fragment(const roce::PacketArrival& arrival) {
  const wire::Packet& piece = arrival.packet;
  if (piece.queue_key != queue_key_) {
    ++port_->drops().wrong_queue_key;
    return;
  }
  const Context* context = find_context(transport::context_of_fragment(piece.payload));
  if (context == nullptr) {
    ++port_->drops().unknown_flow;
    return;
  }
  const roce::Path& path = context->out != nullptr ? context->out->path() : context->in->path();
  if (!(path.to == arrival.from)) {
    ++port_->drops().wrong_peer;
    return;
  }
  Fragments& fragments =
      context->out != nullptr ? context->out->fragments() : context->in->fragments();
  const auto bytes = fragments.take(piece.payload);
  if (bytes && bytes->empty()) return;
  wire::Packet whole;
  if (!bytes || wire::parse(*bytes, whole) != wire::Malformed::kNone ||
      wire::transport_of(whole.opcode) != wire::Transport::kReliableDatagram ||
      whole.destination != queue_pair_ || whole.end_to_end_context != context->number) {
    ++port_->drops().malformed;
    return;
  }
  take_of_flow(whole, arrival);
}

void StationHub::take_of_flow(const wire::Packet& packet, const roce::PacketArrival& arrival) {
  Context* context = find_context(packet.end_to_end_context);
  const bool request = wire::layout_of(packet.opcode).request;
  if (context == nullptr || (request ? context->in == nullptr : context->out == nullptr)) {
    ++port_->drops().unknown_flow;
    if (!request || now_ < next_rejection_) return;
    next_rejection_ = now_ + kBetweenRejections;
    const auto path = path_between(arrival.to, arrival.from);
    return send_cm(*path, ConnRej{ConnRej::Why::kUnknown, 0, packet.end_to_end_context});
  }
  const roce::Path& path = request ? context->in->path() : context->out->path();
  if (!(path.to == arrival.from)) {
    ++port_->drops().wrong_peer;
  } else if (request && packet.queue_key != queue_key_) {
    ++port_->drops().wrong_queue_key;
  } else {
    ++(request ? taken_.requests : taken_.answers);
    if (arrival.marked) [[unlikely]]
      take_mark(*context, request);
    if (touched_ != context->number) {
      settle();
      touched_ = context->number;
    }
    if (request) return context->in->take(packet, now_);
    context->out->take(packet, now_);
  }
}

// Called after a run of packets for one context: it may have something to send now.
void StationHub::settle() {
  const Context* context = find_context(std::exchange(touched_, 0));
  if (context == nullptr) return;
  const os::Time next = due(*context);
  if (context->out != nullptr || next != os::Time::max()) activate(context->number, next);
}

// The requester controls the window: a marked answer concerns this end, a marked request the peer.
void StationHub::take_mark(Context& context, bool request) {
  ++taken_.marked;
  if (!request) return context.out->marked(now_);
  const Introduction& peer = context.in->req().me;
  port_->send_cnp(context.in->path(), peer.queue_pair, peer.connection_id, now_);
}

// The headers of a CNP name no flow, and its source address can be forged. It counts only with the
// connection id that this end has drawn for the flow and told its peer alone.
void StationHub::take_cnp(const roce::PacketArrival& arrival) {
  const wire::Packet& packet = arrival.packet;
  RdmSender* out = packet.destination == queue_pair_ ? out_to(arrival.from) : nullptr;
  if (out == nullptr || out->connection_id() != roce::CongestionNotifier::token_of(packet)) {
    ++port_->drops().unknown_flow;
    return;
  }
  ++taken_.cnps;
  out->marked(now_);
}

void StationHub::take_conn_message(const roce::PacketArrival& arrival) {
  if (arrival.packet.queue_key != wire::kCmQueueKey) {
    ++port_->drops().wrong_queue_key;
    return;
  }
  const auto message = read_conn_message(arrival.packet.payload);
  if (!message) {
    ++port_->drops().malformed;
    return;
  }
  ++taken_.greetings;
  const auto path = path_between(arrival.to, arrival.from);
  if (const auto* req = std::get_if<ConnReq>(&*message)) return on_req(*req, *path);
  if (const auto* rej = std::get_if<ConnRej>(&*message)) return on_rej(*rej, *path);
  if (const auto* disconnect = std::get_if<Disconnect>(&*message))
    return on_disconnect(*disconnect, *path);
  const auto& rep = std::get<ConnRep>(*message);
  RdmSender* out = out_to(arrival.from);
  if (out == nullptr || !out->on_rep(rep, now_)) return;
  for (RdmReceiver* in : in_from(arrival.from)) {
    if (in->station() != out->station()) continue;
    in->hear(now_);
    if (in->suggest(out->carries())) send_cm(in->path(), in->rep());
  }
}

// The REP was lost, or the REQ is a keepalive.
void StationHub::on_repeated_req(RdmReceiver& in, const ConnReq& req, const roce::Path& back) {
  in.hear(now_);
  RdmSender* out = out_to(back.to);
  if (out != nullptr && out->station() == in.station()) {
    out->hear(now_);
    if (req.raises == in.rep().raises) out->narrow(req.me.path_mtu);
  }
  in.agree(req);
  if (!in.is_shut()) return send_cm(back, in.rep());
  send_cm(back, ConnRej{ConnRej::Why::kUnwanted, req.me.connection_id, 0});
}

// A peer begins a flow to this end.
void StationHub::on_req(const ConnReq& req, const roce::Path& back) {
  if (req.service != options_.service) {
    return send_cm(back, ConnRej{ConnRej::Why::kNobody, req.me.connection_id, 0});
  }
  if (req.me.station == 0) {  // names no endpoint
    ++port_->drops().malformed;
    return;
  }
  const std::vector<RdmReceiver*> known = in_from(back.to);
  RdmReceiver* oldest = nullptr;
  for (RdmReceiver* in : known) {
    if (oldest == nullptr || in->heard() < oldest->heard()) oldest = in;
    if (in->req().me.connection_id == req.me.connection_id) return on_repeated_req(*in, req, back);
    // The endpoint that had this address before is gone.
    if (in->station() != req.me.station) {
      close_source(*in, true);
      oldest = nullptr;
      break;
    }
  }
  if (known.size() >= kMostOfOnePeer && oldest != nullptr) close_source(*oldest, false);
  if (!room_for_context()) return;
  if (!req.early_data.empty() && !sink_->takes_more()) {
    if (closing_) send_cm(back, ConnRej{ConnRej::Why::kUnwanted, req.me.connection_id, 0});
    return;  // the REQ will be repeated
  }
  const auto path = os::udp_path_to(back.to, back.from);
  const std::size_t path_mtu =
      carries(back.to, roce::path_mtu_within(path ? path.value().mtu : 0, back.to.family()));
  const auto free = std::find(sources_.begin(), sources_.end(), 0U);
  const auto source = options_.first_source + static_cast<std::uint32_t>(free - sources_.begin());
  const std::size_t place = source - options_.first_source;
  if (free == sources_.end()) sources_.push_back(0);
  Context& context = new_context();
  peers_[back.to].in.push_back(context.number);
  ConnRep rep;
  rep.connection_id = req.me.connection_id;
  rep.me = introduction();
  rep.me.connection_id = static_cast<std::uint32_t>(os::random_number()) | 1;
  rep.me.context = context.number;
  rep.me.path_mtu = std::min(req.me.path_mtu, path_mtu);
  rep.path_mtu = std::min(req.path_mtu, rep.me.path_mtu);
  rep.raises = req.raises;
  rep.first = Psn(static_cast<std::uint32_t>(os::random_number()));
  context.in = std::make_unique<RdmReceiver>(*this, req, rep, path_between(back.from, back.to),
                                             source, kLongestMessage);
  context.in->hear(now_);
  sources_[place] = context.number;
  const bool named = !req.name.is_any() && req.name.port() == back.to.port();
  sink_->source_opened(source, named ? req.name : back.to);
  send_cm(back, rep);
  if (!req.early_data.empty()) context.in->take_early_data(req.early_data);
}

void StationHub::on_rej(const ConnRej& rej, const roce::Path& back) {
  RdmSender* out = out_to(back.to);
  if (out == nullptr) return;
  switch (rej.why) {
    case ConnRej::Why::kUnknown:
      if (out->state() == RdmSender::State::kOpen && out->peer_context() == rej.context) {
        out->lose(link::PeerState::kDied);
      }
      return;
    case ConnRej::Why::kUnwanted:
      if (out->connection_id() == rej.connection_id) out->lose(link::PeerState::kRefuses);
      return;
    case ConnRej::Why::kNobody:
      if (out->connection_id() == rej.connection_id) out->on_rejected();
      return;
  }
}

void StationHub::on_disconnect(const Disconnect& disconnect, const roce::Path& back) {
  if (disconnect.answer) return;
  send_cm(back, Disconnect{true, disconnect.receiver_id, disconnect.sender_id});
  RdmSender* out = out_to(back.to);
  if (out != nullptr && out->connection_id() == disconnect.receiver_id &&
      out->peer_connection_id() == disconnect.sender_id) {
    return out->part(disconnect.expected, now_);
  }
  for (RdmReceiver* in : in_from(back.to)) {
    const std::uint32_t connection_id = in->rep().me.connection_id;
    const bool meant = disconnect.receiver_id == connection_id || disconnect.receiver_id == 0;
    if (meant && in->req().me.connection_id == disconnect.sender_id)
      return close_source(*in, false);
  }
}

// The kernel's path MTU is used, not the one in the ICMP error, which can be forged.
void StationHub::path_changed(const os::SocketAddress& peer) {
  if (os::udp_path_to(peer, port_->address())) narrow(peer, path_mtu_to(peer));
}

// The least one where there is no path.
std::size_t StationHub::path_mtu_to(const os::SocketAddress& peer) const {
  const auto path = os::udp_path_to(peer, port_->address());
  return roce::path_mtu_within(path ? path.value().mtu : 0, peer.family());
}

void StationHub::narrow(const os::SocketAddress& peer, std::size_t path_mtu) {
  if (RdmSender* out = out_to(peer)) out->narrow(path_mtu);
  for (RdmReceiver* in : in_from(peer)) {
    if (in->suggest(path_mtu)) send_cm(in->path(), in->rep());
  }
}

void StationHub::unreachable(const os::UdpError& error) {
  if (error.what != os::UdpError::What::kPortUnreachable) return;
  std::optional<std::uint64_t> gone;  // the station that has been there
  if (RdmSender* out = out_to(error.peer)) {
    const bool proven = quotes_request(error, *out);
    if (proven) gone = out->station();
    out->count_unreachable(proven);
  }
  for (RdmReceiver* in : in_from(error.peer)) {
    if (in->count_unreachable(gone == in->station())) close_source(*in, true);
  }
}

void StationHub::send_cm(const roce::Path& path, const ConnMessage& message) {
  roce::Trains& trains = port_->trains();
  trains.flush();
  const std::span<std::byte> place = trains.place();
  if (place.empty()) return;  // the message will be repeated
  const auto mad = write_conn_message(message);
  wire::Packet packet;
  packet.opcode = opcode_of(wire::Transport::kUnreliableDatagram, wire::Operation::kSendOnly);
  packet.destination = wire::kCmQpn;
  packet.psn = conn_psn_;
  packet.queue_key = wire::kCmQueueKey;
  packet.source = wire::kCmQpn;
  conn_psn_ = conn_psn_.after(1);
  wire::write_headers(packet, mad.size(), place.data());
  const std::size_t headers = wire::header_bytes(packet);
  std::memcpy(place.data() + headers, mad.data(), mad.size());
  trains.add(path, headers + mad.size());
  trains.flush();
}

os::Time StationHub::due(const Context& context) const {
  const os::Time out = context.out != nullptr ? context.out->due() : os::Time::max();
  return context.in != nullptr ? std::min(out, context.in->due()) : out;
}

// Requests first: acknowledgements are smaller, and may end a train.
void StationHub::emit(bool all) {
  emit_at_ = os::Time::max();
  if (active_.empty()) return port_->trains().flush();
  emitting_.clear();
  emitting_.swap(active_);
  for (const bool out : {true, false}) {
    for (const std::uint32_t number : emitting_) {
      Context* context = find_context(number);
      if (context == nullptr) continue;
      if (out && context->out != nullptr) context->out->emit(port_->trains(), now_);
      if (!out && context->in != nullptr) context->in->emit(port_->trains(), all, now_);
    }
  }
  port_->trains().flush();
  for (const std::uint32_t number : emitting_) {
    Context* context = find_context(number);
    if (context == nullptr) continue;
    const os::Time next = due(*context);
    context->active = (context->out != nullptr && !context->out->quiet()) ||
                      (context->in != nullptr && next != os::Time::max());
    if (!context->active) continue;
    active_.push_back(number);
    emit_at_ = std::min(emit_at_, next);
  }
}

void StationHub::send_now(RdmSender& channel, os::Time now) {
  channel.emit(port_->trains(), now);
  port_->trains().flush();
  activate(channel);
}

}  // namespace weft::udp
