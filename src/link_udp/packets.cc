// SPDX-License-Identifier: BSD-2-Clause
// How do the packets of an endpoint find their channels?
#include <algorithm>
#include <cstring>
#include <utility>

#include "os/runtime_dir.h"
#include "os/udp_path.h"
#include "route.h"
#include "station_hub.h"
#include "wire/packet.h"

namespace weft::udp {
namespace {

constexpr int kBatchesAtOnce = 4;
// Whole messages are no longer than that, whatever a peer's limit is.
constexpr std::size_t kLongestMessage = std::size_t{128} * 1024;
// Flows that one peer may have: it needs one, and another one while the first is being forgotten.
constexpr std::size_t kMostOfOnePeer = 16;
constexpr auto kBetweenRejections = std::chrono::microseconds(200);
constexpr std::uint16_t kPkeyNumber = 0x7FFF;

// Identifications that Weft's own packets have: their place in a train.
bool plausible(const wire::Ipv4Words& words) {
  return words.identification < os::UdpSocket::kMaxSegments && words.fragment == 0x4000;
}

}  // namespace

// What came from a peer before its host said that nobody is there is heard first: errors wait until
// the socket is empty.
unsigned StationHub::receive() {
  unsigned count = 0;
  if (trains_.met_errors()) errors_wait_ = true;
  for (int i = 0; i < kBatchesAtOnce; ++i) {
    if (socket_.receive(batch_) != 0) break;
    if (batch_.errors_waiting()) {
      errors_wait_ = true;
    } else if (batch_.arrivals().empty()) {
      if (std::exchange(errors_wait_, false)) take_errors();
      break;
    }
    batch_.for_each([&](const os::Datagram& datagram) {
      ++count;
      take(datagram);
    });
    if (batch_.arrivals().size() < kArrivals) break;  // there was no more
  }
  return count;
}

void StationHub::take(const os::Datagram& datagram) {
  const wire::Route route = route_between(datagram.from, datagram.to);
  wire::Ipv4Words expected;
  expected.identification = static_cast<std::uint16_t>(datagram.index);
  const auto words = wire::check_icrc(route, datagram.bytes, expected);
  if (!words || (!route.v6 && !plausible(*words))) {
    ++drops_.wrong_crc;
    return;
  }
  wire::Packet packet;
  if (wire::parse(datagram.bytes, packet) != wire::Malformed::kNone) {
    ++drops_.malformed;
  } else if ((packet.pkey & kPkeyNumber) != kPkeyNumber) {
    ++drops_.wrong_pkey;
  } else if (packet.destination == wire::kCmQpn) {
    take_greeting(packet, datagram);
  } else if (packet.destination != queue_pair_ ||
             wire::transport_of(packet.opcode) != wire::Transport::kReliableDatagram) {
    ++drops_.wrong_queue_pair;
  } else {
    take_of_flow(packet, datagram);
  }
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
  } else if (!request) {
    context->out->take(packet, now_);
  } else if (packet.queue_key != queue_key_) {
    ++drops_.wrong_queue_key;
  } else {
    context->in->take(packet, now_);
  }
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
  const auto way = way_between(datagram.to, datagram.from);
  if (const auto* hello = std::get_if<Hello>(&*greeting)) return greeted(*hello, *way);
  if (const auto* refusal = std::get_if<Refusal>(&*greeting)) return said(*refusal, *way);
  if (const auto* farewell = std::get_if<Farewell>(&*greeting)) return said(*farewell, *way);
  const auto& welcome = std::get<Welcome>(*greeting);
  OutChannel* out = out_to(datagram.from);
  if (out != nullptr) out->welcomed(welcome, now_);
}

// Somebody wants to send. He may have asked before, and not have got the answer.
void StationHub::greeted(const Hello& hello, const Way& back) {
  if (hello.service != options_.service) {
    return say(back, Refusal{Refusal::Why::kNobody, hello.me.token, 0});
  }
  std::size_t of_this_peer = 0;
  InChannel* oldest = nullptr;
  for (const std::uint32_t number : sources_) {
    if (number == 0) continue;
    InChannel& in = *find_context(number)->in;
    if (!(in.way().to == back.to)) continue;
    ++of_this_peer;
    if (oldest == nullptr || in.heard() < oldest->heard()) oldest = &in;
    if (in.hello().me.token == hello.me.token) {
      in.hear(now_);
      if (!in.is_shut()) return say(back, in.welcome());
      return say(back, Refusal{Refusal::Why::kUnwanted, hello.me.token, 0});
    }
    // Whoever had that address before has gone.
    if (in.station() != hello.me.station) {
      close_source(in, true);
      oldest = nullptr;
      break;
    }
  }
  if (of_this_peer >= kMostOfOnePeer && oldest != nullptr) close_source(*oldest, false);
  if (!room_for_context()) return;
  std::size_t source = 0;
  while (source < sources_.size() && sources_[source] != 0) ++source;
  if (source == sources_.size()) sources_.push_back(0);
  Context& context = new_context();
  Welcome welcome;
  welcome.token = hello.me.token;
  welcome.me = introduction();
  welcome.me.token = static_cast<std::uint32_t>(os::random_number()) | 1;
  welcome.me.context = context.number;
  const auto path = os::udp_path_to(back.to, back.from);
  welcome.me.path_mtu = std::min(hello.me.path_mtu, path_mtu_within(path ? path.value().mtu : 0));
  welcome.first = Psn(static_cast<std::uint32_t>(os::random_number()));
  context.in = std::make_unique<InChannel>(*this, hello, welcome, way_between(back.from, back.to),
                                           static_cast<std::uint32_t>(source), kLongestMessage);
  context.in->hear(now_);
  sources_[source] = context.number;
  const bool named = !hello.name.is_any() && hello.name.port() == back.to.port();
  sink_->source_opened(static_cast<std::uint32_t>(source), named ? hello.name : back.to);
  say(back, welcome);
}

void StationHub::said(const Refusal& refusal, const Way& back) {
  for (const auto& context : contexts_) {
    OutChannel* out = context == nullptr ? nullptr : context->out.get();
    if (out == nullptr || !(out->peer() == back.to)) continue;
    const bool unknown = refusal.why == Refusal::Why::kUnknown &&
                         out->state() == OutChannel::State::kOpen &&
                         out->peer_context() == refusal.context;
    const bool unwanted = refusal.why == Refusal::Why::kUnwanted && out->token() == refusal.token;
    if (unknown) out->lose(link::PeerState::kDied);
    if (unwanted) out->lose(link::PeerState::kRefuses);
  }
}

void StationHub::said(const Farewell& farewell, const Way& back) {
  if (farewell.answer) return;
  say(back, Farewell{true, farewell.receiver_token, farewell.sender_token});
  for (const auto& context : contexts_) {
    if (context == nullptr) continue;
    OutChannel* out = context->out.get();
    if (out != nullptr && out->peer() == back.to && out->token() == farewell.receiver_token &&
        out->peer_token() == farewell.sender_token) {
      return out->lose(link::PeerState::kLeft);
    }
    InChannel* in = context->in.get();
    if (in != nullptr && in->way().to == back.to &&
        in->welcome().me.token == farewell.receiver_token &&
        in->hello().me.token == farewell.sender_token) {
      return close_source(*in, false);
    }
  }
}

void StationHub::take_errors() {
  while (const auto error = socket_.next_error()) {
    if (error->what != os::UdpError::What::kPortUnreachable) continue;
    if (OutChannel* out = out_to(error->peer)) out->strike();
    for (const std::uint32_t number : sources_) {
      if (number == 0) continue;
      InChannel& in = *find_context(number)->in;
      if (in.way().to == error->peer && in.strike()) close_source(in, true);
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

// Requests first: acknowledgements are smaller, and may end a train.
void StationHub::emit(bool all) {
  std::vector<std::uint32_t> active;
  active.swap(active_);
  for (const bool out : {true, false}) {
    for (const std::uint32_t number : active) {
      Context* context = find_context(number);
      if (context == nullptr) continue;
      if (out && context->out != nullptr) context->out->emit(trains_, now_);
      if (!out && context->in != nullptr) context->in->emit(trains_, all);
    }
  }
  trains_.flush();
  for (const std::uint32_t number : active) {
    Context* context = find_context(number);
    if (context == nullptr) continue;
    const bool stays = (context->out != nullptr && !context->out->quiet()) ||
                       (context->in != nullptr && context->in->ready());
    context->active = stays;
    if (stays) active_.push_back(number);
  }
}

void StationHub::send_now(OutChannel& channel) {
  const os::Time now = std::chrono::steady_clock::now();
  channel.emit(trains_, now);
  trains_.flush();
}

}  // namespace weft::udp
