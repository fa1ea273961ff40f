// SPDX-License-Identifier: BSD-2-Clause
// How do the queue pairs of a UDP port share its sockets?
#include "roce/packet_port.h"

#include <utility>

#include "mad_route.h"
#include "relay_polls.h"
#include "roce/relay_header.h"
#include "roce/route.h"

namespace weft::roce {
namespace {

// About 2 ms of polls that find nothing: a program that sleeps now and then does not poll so often
// in between.
constexpr unsigned kPollsWatched = 4096;

// RFC 3168: both ECN bits of the traffic class say "congestion experienced".
bool is_ecn_marked(const os::Datagram& datagram) {
  constexpr std::uint8_t kEcnBits = 3;
  return (datagram.traffic_class & kEcnBits) == kEcnBits;
}

// A foreign peer sends to groups at port 4791, as Weft's endpoints do; its source queue pair tells
// it from them. Weft's packets have predictable IPv4 identifications; a packet with another one is
// foreign.
bool may_be_foreign(const ReceiveSocket& socket, const os::Datagram& datagram) {
  if (socket.group == 0 || datagram.to.port() != wire::kUdpPort) return false;
  wire::Packet packet;
  return wire::parse(datagram.bytes, packet) == wire::Malformed::kNone && is_foreign(packet.source);
}

}  // namespace

PacketPort::PacketPort(os::UdpSocket socket, os::WakeSet& wake, const PacketPortOptions& options)
    : capture_(options.capture),
      qpns_(socket.address().port()),
      receive_set_(options.arrivals),
      check_(options.capture),
      stats_(*options.stats),
      wake_(wake),
      polls_watched_(kPollsWatched) {
  sides_.push_back(std::make_unique<FamilySocket>(*this, std::move(socket), capture_));
  receive_set_.add({&sides_[0]->socket, 0});
}

PacketPort::~PacketPort() {
  for (const auto& side : sides_) wake_.remove(side->socket.fd());
}

Result<std::unique_ptr<PacketPort>> PacketPort::open(os::UdpSocket socket, os::WakeSet& wake,
                                                     const PacketPortOptions& options) {
  std::unique_ptr<PacketPort> port(new PacketPort(std::move(socket), wake, options));
  if (Status ok = port->prepare(options); !ok) return ok.error();
  return port;
}

Status PacketPort::prepare(const PacketPortOptions& options) {
  if (Status ok = wake_.add(sides_[0]->socket.fd()); !ok) return ok;
  if (options.relay == nullptr) return {};
  relay_polls_ = std::make_unique<RelayPolls>(options.relay);
  if (options.relays_datagrams) return relay_polls_->open(address());
  relay_polls_->attend();
  return {};
}

Status PacketPort::add_family(os::UdpSocket socket) {
  sides_.push_back(std::make_unique<FamilySocket>(*this, std::move(socket), capture_));
  receive_set_.add({&sides_.back()->socket, 0});
  receive_set_.skip_quiet();
  return wake_.add(sides_.back()->socket.fd());
}

PacketOutput* PacketPort::output(int family) {
  for (const auto& side : sides_) {
    if (side->socket.address().family() == family) return side.get();
  }
  return nullptr;
}

Result<std::uint32_t> PacketPort::attach(PacketHandler& handler, QpnUse use, os::Time now) {
  auto qpn = qpns_.take(handler, use, now);
  if (!qpn || use != QpnUse::kManager || relay_polls_ == nullptr) return qpn;
  if (Status ok = relay_polls_->open_manager(address()); !ok) {
    qpns_.give_back(qpn.value(), now);
    return ok.error();
  }
  return qpn;
}

void PacketPort::detach(std::uint32_t qpn, os::Time now) {
  qpns_.give_back(qpn, now);
  if (qpn == wire::kCmQpn && relay_polls_ != nullptr) relay_polls_->close_manager();
}

// A handler may detach others that would have been told.
template <class Visit>
void PacketPort::each_owner(Visit visit) {
  for (PacketHandler* const each : qpns_.owners()) {
    if (qpns_.owns_any(*each)) visit(*each);
  }
}

// A descriptor in an epoll set makes the kernel look for sleepers at each packet, 2 to 5 % of the
// time that a message of 8 bytes takes over the loopback. A program that polls does not need it.
void PacketPort::count_poll() {
  if (asleep_ || polls_watched_ == 0 || --polls_watched_ != 0) [[likely]]
    return;
  for (const auto& side : sides_) wake_.remove(side->socket.fd());
}

// Packets of a peer that precede an ICMP error are handled first: errors wait until the socket is
// empty.
unsigned PacketPort::poll(unsigned most, unsigned reads) {
  count_poll();
  for (const auto& side : sides_) {
    if (const auto peer = side->trains.narrow_path()) {
      each_owner([&](PacketHandler& handler) { handler.path_changed(*peer); });
    }
    if (side->trains.errors_seen()) errors_wait_ = true;
  }
  unsigned count = receive_set_.take(
      most, reads,
      [&](const ReceiveSocket& socket, const os::Datagram& datagram) { take(socket, datagram); });
  if (relay_polls_ != nullptr) {
    count += relay_polls_->poll(count == 0, queue_pair_at(address().port()),
                                [&](const os::Datagram& datagram) { take_foreign(datagram, 0); });
  }
  if (receive_set_.errors_seen()) errors_wait_ = true;
  if (emptied() && errors_wait_) report_errors();
  return count;
}

void PacketPort::report_errors() {
  errors_wait_ = false;
  for (const auto& side : sides_) {
    while (const auto error = side->socket.next_error()) {
      if (error->what == os::UdpError::What::kTooBig) {
        each_owner([&](PacketHandler& handler) { handler.path_changed(error->peer); });
      } else if (error->what != os::UdpError::What::kOther) {
        each_owner([&](PacketHandler& handler) { handler.unreachable(*error); });
      }
    }
  }
}

bool PacketPort::busy() const {
  return receive_set_.has_more() || (relay_polls_ != nullptr && relay_polls_->hot());
}

void PacketPort::take(const ReceiveSocket& socket, const os::Datagram& datagram) {
  if (relay_polls_ != nullptr) [[unlikely]] {
    if (is_relayed(datagram.bytes)) {
      const auto handed = read_relayed(datagram, stats_);
      if (handed) take_foreign(handed->datagram(), 0);
      return;
    }
    if (may_be_foreign(socket, datagram)) return take_foreign(datagram, socket.group);
  }
  wire::Packet packet;
  if (!check_.read(datagram, packet, stats_)) return;
  hand_over({packet, datagram.from, datagram.to, socket.group, is_ecn_marked(datagram)});
}

// Replies to a foreign peer go to port 4791, whatever its source port is. So it can never be taken
// for one of Weft's endpoints, whatever a relay header says. Only a REQ for a service of Weft names
// its port; the connection manager trusts no REQ.
void PacketPort::take_foreign(const os::Datagram& datagram, std::uint64_t group) {
  wire::Packet packet;
  if (!check_.read_foreign(datagram, packet, stats_)) return;
  if (!is_foreign(packet.source)) {
    stats_.add(Stat::kRelayedFromWeft);
    return;
  }
  const auto mad = read_mad(packet);
  os::SocketAddress from = datagram.from;
  os::SocketAddress to = datagram.to;
  if (mad && is_request_of_weft(*mad)) {
    to.set_port(address().port());
  } else {
    from.set_port(wire::kUdpPort);
  }
  hand_over({packet, from, to, group, is_ecn_marked(datagram)});
}

void PacketPort::hand_over(const PacketArrival& arrival) {
  const std::uint32_t queue_pair = arrival.packet.destination;
  const bool right_socket = (arrival.group != 0) == (queue_pair == wire::kMulticastQpn);
  PacketHandler* const handler = right_socket ? qpns_.owner(queue_pair) : nullptr;
  const bool cnp = arrival.packet.opcode == wire::kCongestionNotification;
  if (handler == nullptr) {
    stats_.add(cnp ? Stat::kUnknownFlow : Stat::kUnknownQp);
  } else if (cnp) [[unlikely]] {
    handler->take_cnp(arrival);
  } else {
    handler->take(arrival);
  }
}

void PacketPort::send_cnp(const Path& path, std::uint32_t sender, std::uint32_t flow_identity,
                          os::Time now) {
  PacketOutput* const output = this->output(path.to.family());
  if (output == nullptr) return;
  output->flush();
  const std::span<std::byte> place = output->place();
  if (place.empty()) return;
  constexpr std::size_t kBytes = CongestionNotifier::kBytes;
  const std::size_t length = notifier_.notify(route_between(path.to, path.from), sender,
                                              flow_identity, now, place.first<kBytes>());
  if (length == 0) return;
  output->add(path, length);
  output->flush();
}

Status PacketPort::listen(os::UdpSocket& socket, std::uint64_t group) {
  if (Status ok = wake_.add(socket.fd()); !ok) return ok;
  receive_set_.add({&socket, group});
  return {};
}

void PacketPort::stop_listening(const os::UdpSocket& socket) {
  count_overflows();
  receive_set_.remove(socket);
  wake_.remove(socket.fd());
}

void PacketPort::count_overflows() {
  stats_.add(Stat::kSocketOverflows, receive_set_.take_dropped());
  if (relay_polls_ != nullptr) relay_polls_->count_overflows();
}

bool PacketPort::fall_asleep() {
  if (polls_watched_ == 0) {
    for (const auto& side : sides_) {
      if (!wake_.add(side->socket.fd())) return false;
    }
  }
  polls_watched_ = kPollsWatched;
  asleep_ = true;
  receive_set_.attend();
  if (relay_polls_ == nullptr) return !receive_set_.has_more();
  relay_polls_->watch(wake_);
  return !receive_set_.has_more() && !relay_polls_->has_more();
}

}  // namespace weft::roce
