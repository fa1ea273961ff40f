// SPDX-License-Identifier: BSD-2-Clause
// How do the packets of an endpoint find their channels?
#include <algorithm>
#include <cstring>
#include <utility>

#include "congestion_mark.h"
#include "link_udp/route.h"
#include "os/runtime_dir.h"
#include "os/udp_path.h"
#include "station_hub.h"
#include "wire/packet.h"

namespace weft::udp {
namespace {

constexpr int kBatchesAtOnce = 4;
// Whole messages are no longer than that, whatever a peer's limit is.
constexpr std::size_t kLongestMessage = 2 * kEagerLimit;
// Flows that one peer may have: it needs one, and another one while the first is being forgotten.
constexpr std::size_t kMostOfOnePeer = 16;
// Of what is read for a peer, so many bytes go at once.
constexpr std::uint64_t kEmitted = std::uint64_t{64} * 1024;
constexpr auto kBetweenRejections = std::chrono::microseconds(200);

}  // namespace

// What came from a peer before its host said that nobody is there is heard first: errors wait until
// the socket is empty.
unsigned StationHub::receive() {
  unsigned count = 0;
  if (const auto peer = trains_.narrow_way()) look_at_way(*peer);
  if (trains_.met_errors()) errors_wait_ = true;
  for (int i = 0; i < kBatchesAtOnce; ++i) {
    if (socket_.receive(batch_) != 0) break;
    if (batch_.errors_waiting()) {
      errors_wait_ = true;
    } else if (batch_.arrivals().empty()) {
      emptied_ = now_;
      if (std::exchange(errors_wait_, false)) take_errors();
      break;
    }
    memory_.forget(batch_.bytes());
    batch_.for_each([&](const os::Datagram& datagram) {
      ++count;
      take(datagram);
    });
    settle();
    if (batch_.arrivals().size() < kArrivals) break;  // there was no more
  }
  return count;
}

void StationHub::take(const os::Datagram& datagram) {
  wire::Packet packet;
  if (!check_.read(datagram, packet, drops_)) return;
  if (packet.destination == wire::kCmQpn) {
    take_greeting(packet, datagram);
  } else if (packet.opcode == wire::kCongestionNotification) {
    take_notice(packet, datagram);
  } else if (packet.destination == queue_pair_ &&
             wire::transport_of(packet.opcode) == wire::Transport::kUnreliableDatagram) {
    take_piece(packet, datagram);
  } else if (packet.destination != queue_pair_ ||
             wire::transport_of(packet.opcode) != wire::Transport::kReliableDatagram) {
    ++drops_.wrong_queue_pair;
  } else {
    take_of_flow(packet, datagram);
  }
}

// What has become whole is looked at as if it had come so.
void StationHub::take_piece(const wire::Packet& piece, const os::Datagram& datagram) {
  if (piece.queue_key != queue_key_) {
    ++drops_.wrong_queue_key;
    return;
  }
  const Context* context = find_context(transport::context_of_piece(piece.payload));
  if (context == nullptr) {
    ++drops_.unknown_flow;
    return;
  }
  const Way& way = context->out != nullptr ? context->out->way() : context->in->way();
  if (!(way.to == datagram.from)) {
    ++drops_.wrong_peer;
    return;
  }
  Piecework& pieces = context->out != nullptr ? context->out->pieces() : context->in->pieces();
  const auto bytes = pieces.take(piece.payload);
  if (bytes && bytes->empty()) return;
  wire::Packet whole;
  if (!bytes || wire::parse(*bytes, whole) != wire::Malformed::kNone ||
      wire::transport_of(whole.opcode) != wire::Transport::kReliableDatagram ||
      whole.destination != queue_pair_ || whole.end_to_end_context != context->number) {
    ++drops_.malformed;
    return;
  }
  take_of_flow(whole, datagram);
}

void StationHub::take_of_flow(const wire::Packet& packet, const os::Datagram& datagram) {
  Context* context = find_context(packet.end_to_end_context);
  const bool request = wire::layout_of(packet.opcode).request;
  if (context == nullptr || (request ? context->in == nullptr : context->out == nullptr)) {
    ++drops_.unknown_flow;
    if (!request || now_ < next_rejection_) return;
    next_rejection_ = now_ + kBetweenRejections;
    const auto way = way_between(datagram.to, datagram.from);
    return say(*way, Refusal{Refusal::Why::kUnknown, 0, packet.end_to_end_context});
  }
  const Way& way = request ? context->in->way() : context->out->way();
  if (!(way.to == datagram.from)) {
    ++drops_.wrong_peer;
  } else if (request && packet.queue_key != queue_key_) {
    ++drops_.wrong_queue_key;
  } else {
    ++(request ? taken_.requests : taken_.answers);
    const bool marked = met_congestion(datagram);
    if (marked) [[unlikely]]
      take_mark(*context, request, datagram);
    if (touched_ != context->number) {
      settle();
      touched_ = context->number;
    }
    if (request) return context->in->take(packet, now_);
    context->out->take(packet, now_);
  }
}

// After packets for one context, most often many in a row: it may have something to do now.
void StationHub::settle() {
  const Context* context = find_context(std::exchange(touched_, 0));
  if (context == nullptr) return;
  const os::Time next = due(*context);
  if (context->out != nullptr || next != os::Time::max()) activate(context->number, next);
}

// How much is under way is for the one to say who makes requests: of answers it is this end.
void StationHub::take_mark(Context& context, bool request, const os::Datagram& datagram) {
  ++taken_.marked;
  if (!request) return context.out->marked(now_);
  trains_.flush();
  const std::span<std::byte> place = trains_.place();
  if (place.empty()) return;
  constexpr std::size_t kBytes = transport::CongestionNotifier::kBytes;
  const Introduction& peer = context.in->hello().me;
  const std::size_t length =
      notifier_.notify(route_between(datagram.from, datagram.to), peer.queue_pair, peer.token, now_,
                       place.first<kBytes>());
  if (length == 0) return;
  trains_.add(context.in->way(), length);
  trains_.flush();
}

// The headers of a CNP name no flow, and its source address can be forged. It counts only with the
// token that this end has drawn for the flow and told its peer alone.
void StationHub::take_notice(const wire::Packet& packet, const os::Datagram& datagram) {
  OutChannel* out = packet.destination == queue_pair_ ? out_to(datagram.from) : nullptr;
  if (out == nullptr || out->token() != transport::CongestionNotifier::token_of(packet)) {
    ++drops_.unknown_flow;
    return;
  }
  ++taken_.notices;
  out->marked(now_);
}

void StationHub::take_greeting(const wire::Packet& packet, const os::Datagram& datagram) {
  if (packet.queue_key != wire::kCmQueueKey) {
    ++drops_.wrong_queue_key;
    return;
  }
  const auto greeting = read_greeting(packet.payload);
  if (!greeting) {
    ++drops_.malformed;
    return;
  }
  ++taken_.greetings;
  const auto way = way_between(datagram.to, datagram.from);
  if (const auto* hello = std::get_if<Hello>(&*greeting)) return greeted(*hello, *way);
  if (const auto* refusal = std::get_if<Refusal>(&*greeting)) return said(*refusal, *way);
  if (const auto* farewell = std::get_if<Farewell>(&*greeting)) return said(*farewell, *way);
  const auto& welcome = std::get<Welcome>(*greeting);
  OutChannel* out = out_to(datagram.from);
  if (out == nullptr || !out->welcomed(welcome, now_)) return;
  for (InChannel* in : in_from(datagram.from)) {
    if (in->station() != out->station()) continue;
    in->hear(now_);
    if (in->suggest(out->carries())) say(in->way(), in->welcome());
  }
}

// The answer was lost, or he asks whether this end is there.
void StationHub::greeted_again(InChannel& in, const Hello& hello, const Way& back) {
  in.hear(now_);
  OutChannel* out = out_to(back.to);
  if (out != nullptr && out->station() == in.station()) {
    out->hear(now_);
    if (hello.raises == in.welcome().raises) out->narrow(hello.me.path_mtu);
  }
  in.agree(hello);
  if (!in.is_shut()) return say(back, in.welcome());
  say(back, Refusal{Refusal::Why::kUnwanted, hello.me.token, 0});
}

// Somebody wants to send.
void StationHub::greeted(const Hello& hello, const Way& back) {
  if (hello.service != options_.service) {
    return say(back, Refusal{Refusal::Why::kNobody, hello.me.token, 0});
  }
  if (hello.me.station == 0) {  // of nobody
    ++drops_.malformed;
    return;
  }
  const std::vector<InChannel*> known = in_from(back.to);
  InChannel* oldest = nullptr;
  for (InChannel* in : known) {
    if (oldest == nullptr || in->heard() < oldest->heard()) oldest = in;
    if (in->hello().me.token == hello.me.token) return greeted_again(*in, hello, back);
    // Whoever had that address before has gone.
    if (in->station() != hello.me.station) {
      close_source(*in, true);
      oldest = nullptr;
      break;
    }
  }
  if (known.size() >= kMostOfOnePeer && oldest != nullptr) close_source(*oldest, false);
  if (!room_for_context()) return;
  if (!hello.words.empty() && !sink_->takes_more()) {
    if (closing_) say(back, Refusal{Refusal::Why::kUnwanted, hello.me.token, 0});
    return;  // he will say it again
  }
  const auto path = os::udp_path_to(back.to, back.from);
  const std::size_t path_mtu =
      carries(back.to, path_mtu_within(path ? path.value().mtu : 0, back.to.family()));
  const auto free = std::find(sources_.begin(), sources_.end(), 0U);
  const auto source = options_.first_source + static_cast<std::uint32_t>(free - sources_.begin());
  const std::size_t place = source - options_.first_source;
  if (free == sources_.end()) sources_.push_back(0);
  Context& context = new_context();
  peers_[back.to].in.push_back(context.number);
  Welcome welcome;
  welcome.token = hello.me.token;
  welcome.me = introduction();
  welcome.me.token = static_cast<std::uint32_t>(os::random_number()) | 1;
  welcome.me.context = context.number;
  welcome.me.path_mtu = std::min(hello.me.path_mtu, path_mtu);
  welcome.path_mtu = std::min(hello.path_mtu, welcome.me.path_mtu);
  welcome.raises = hello.raises;
  welcome.first = Psn(static_cast<std::uint32_t>(os::random_number()));
  context.in = std::make_unique<InChannel>(*this, hello, welcome, way_between(back.from, back.to),
                                           source, kLongestMessage);
  context.in->hear(now_);
  sources_[place] = context.number;
  const bool named = !hello.name.is_any() && hello.name.port() == back.to.port();
  sink_->source_opened(source, named ? hello.name : back.to);
  say(back, welcome);
  if (!hello.words.empty()) context.in->greeted_with(hello.words);
}

void StationHub::said(const Refusal& refusal, const Way& back) {
  OutChannel* out = out_to(back.to);
  if (out == nullptr) return;
  switch (refusal.why) {
    case Refusal::Why::kUnknown:
      if (out->state() == OutChannel::State::kOpen && out->peer_context() == refusal.context) {
        out->lose(link::PeerState::kDied);
      }
      return;
    case Refusal::Why::kUnwanted:
      if (out->token() == refusal.token) out->lose(link::PeerState::kRefuses);
      return;
    case Refusal::Why::kNobody:
      if (out->token() == refusal.token) out->deny();
      return;
  }
}

void StationHub::said(const Farewell& farewell, const Way& back) {
  if (farewell.answer) return;
  say(back, Farewell{true, farewell.receiver_token, farewell.sender_token});
  OutChannel* out = out_to(back.to);
  if (out != nullptr && out->token() == farewell.receiver_token &&
      out->peer_token() == farewell.sender_token) {
    return out->part(farewell.expected, now_);
  }
  for (InChannel* in : in_from(back.to)) {
    const std::uint32_t token = in->welcome().me.token;
    const bool meant = farewell.receiver_token == token || farewell.receiver_token == 0;
    if (meant && in->hello().me.token == farewell.sender_token) return close_source(*in, false);
  }
}

// The system knows best how much the way carries: anybody can forge what a router says.
void StationHub::look_at_way(const os::SocketAddress& peer) {
  if (os::udp_path_to(peer, socket_.address())) narrow(peer, path_mtu_to(peer));
}

// The least one where there is no way.
std::size_t StationHub::path_mtu_to(const os::SocketAddress& peer) const {
  const auto path = os::udp_path_to(peer, socket_.address());
  return path_mtu_within(path ? path.value().mtu : 0, peer.family());
}

void StationHub::narrow(const os::SocketAddress& peer, std::size_t path_mtu) {
  if (OutChannel* out = out_to(peer)) out->narrow(path_mtu);
  for (InChannel* in : in_from(peer)) {
    if (in->suggest(path_mtu)) say(in->way(), in->welcome());
  }
}

// Hosts quote what they complain of. Of packets that are longer than the quotation there are
// headers. In a request stands the queue key that the peer has drawn: so somebody was there, and
// nobody can guess it who has not seen packets of the flow. A greeting proves nothing: it may have
// come before there was somebody.
bool StationHub::quotes_request(const os::UdpError& error, const OutChannel& out) {
  wire::Packet packet;
  const wire::Malformed what = wire::parse(error.quoted(), packet);
  const bool cut_off = what == wire::Malformed::kPadding || what == wire::Malformed::kPayload;
  return (what == wire::Malformed::kNone || cut_off) && out.has_sent(packet);
}

void StationHub::take_errors() {
  while (const auto error = socket_.next_error()) {
    if (error->what == os::UdpError::What::kTooBig) look_at_way(error->peer);
    if (error->what != os::UdpError::What::kPortUnreachable) continue;
    std::optional<std::uint64_t> gone;  // the station that has been there
    if (OutChannel* out = out_to(error->peer)) {
      const bool proven = quotes_request(*error, *out);
      if (proven) gone = out->station();
      out->strike(proven);
    }
    for (InChannel* in : in_from(error->peer)) {
      if (in->strike(gone == in->station())) close_source(*in, true);
    }
  }
}

void StationHub::say(const Way& way, const Greeting& greeting) {
  trains_.flush();
  const std::span<std::byte> place = trains_.place();
  if (place.empty()) return;  // it will be said again
  const auto mad = write_greeting(greeting);
  wire::Packet packet;
  packet.opcode = opcode_of(wire::Transport::kUnreliableDatagram, wire::Operation::kSendOnly);
  packet.destination = wire::kCmQpn;
  packet.psn = greeting_psn_;
  packet.queue_key = wire::kCmQueueKey;
  packet.source = wire::kCmQpn;
  greeting_psn_ = greeting_psn_.after(1);
  wire::write_headers(packet, mad.size(), place.data());
  const std::size_t headers = wire::header_bytes(packet);
  std::memcpy(place.data() + headers, mad.data(), mad.size());
  trains_.add(way, headers + mad.size());
  trains_.flush();
}

os::Time StationHub::due(const Context& context) const {
  const os::Time out = context.out != nullptr ? context.out->due() : os::Time::max();
  return context.in != nullptr ? std::min(out, context.in->due()) : out;
}

// Requests first: acknowledgements are smaller, and may end a train.
void StationHub::emit(bool all) {
  emit_at_ = os::Time::max();
  if (active_.empty()) return trains_.flush();
  memory_.forget(kEmitted);
  emitting_.clear();
  emitting_.swap(active_);
  for (const bool out : {true, false}) {
    for (const std::uint32_t number : emitting_) {
      Context* context = find_context(number);
      if (context == nullptr) continue;
      if (out && context->out != nullptr) context->out->emit(trains_, now_);
      if (!out && context->in != nullptr) context->in->emit(trains_, all, now_);
    }
  }
  trains_.flush();
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

void StationHub::send_now(OutChannel& channel, os::Time now) {
  channel.emit(trains_, now);
  trains_.flush();
  activate(channel);
}

}  // namespace weft::udp
