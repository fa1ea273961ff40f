// SPDX-License-Identifier: BSD-2-Clause
// What becomes of packets that foreign peers send, which know no port but 4791?
#include "roce/port4791_relay.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "mad_route.h"
#include "os/interfaces.h"
#include "roce/relay_set.h"
#include "roce/route.h"
#include "wire/packet.h"

namespace weft::roce {
namespace {

// Another process may own the port. The interval of attempts to bind it.
constexpr auto kBetweenTries = std::chrono::seconds(1);
// Packets of one look: endpoints have something else to do, too.
constexpr unsigned kAtOnce = 32;

}  // namespace

RelaySet::RelaySet(Stats& stats, std::function<void()> held)
    : watch_(std::make_shared<RelayActivity>()), stats_(stats) {
  watch_->held = std::move(held);
  if (auto set = os::EventSet::create()) watch_->arrivals = std::move(set).value();
}

std::shared_ptr<Port4791Relay> RelaySet::at(const os::SocketAddress& address) {
  const std::lock_guard guard(mutex_);
  std::weak_ptr<Port4791Relay>& known = known_[address.host()];
  auto keeper = known.lock();
  if (keeper == nullptr) known = keeper = std::make_shared<Port4791Relay>(address, watch_, stats_);
  return keeper;
}

bool RelaySet::hand_on() {
  std::vector<std::shared_ptr<Port4791Relay>> keepers;
  {
    const std::lock_guard guard(mutex_);
    for (const auto& [host, known] : known_) {
      if (auto keeper = known.lock()) keepers.push_back(std::move(keeper));
    }
  }
  bool more = false;
  for (const auto& keeper : keepers) more = keeper->stand_in().more || more;
  return more;
}

Port4791Relay::~Port4791Relay() {
  if (watch_ == nullptr) return;
  for (const auto& relay : relay_descriptors_) watch_->arrivals.remove(relay->fd());
}

// Single addresses, also for endpoints that have all of them: a socket at the wildcard address
// would keep other processes' sockets from the port, and those of multicast groups.
std::vector<os::SocketAddress> Port4791Relay::missing() const {
  std::vector<os::SocketAddress> wanted;
  if (!address_.is_any()) {
    wanted.push_back(address_);
  } else if (const auto interfaces = os::usable_interfaces()) {
    for (const os::Interface& interface : interfaces.value()) {
      for (const os::InterfaceAddress& each : interface.addresses) {
        if (each.address.family() == address_.family()) wanted.push_back(each.address);
      }
    }
  }
  for (os::SocketAddress& each : wanted) each.set_port(wire::kUdpPort);
  std::erase_if(wanted, [&](const os::SocketAddress& each) {
    return std::ranges::any_of(relay_descriptors_,
                               [&](const auto& relay) { return relay->address() == each; });
  });
  return wanted;
}

// What an address has not today, it may have in a second: no reason to fail is a lasting one.
void Port4791Relay::try_to_open(os::Time now) {
  if (now < next_try_) return;
  next_try_ = now + kBetweenTries;
  for (const os::SocketAddress& address : missing()) {
    auto socket = os::UdpSocket::bind(address, {});
    if (!socket) continue;
    relay_descriptors_.push_back(std::make_unique<os::UdpSocket>(std::move(socket).value()));
    receive_set_.add({relay_descriptors_.back().get(), 0});
    if (watch_ == nullptr) continue;
    // Without a descriptor to spare no engine polls in place of idle endpoints.
    static_cast<void>(watch_->arrivals.add(relay_descriptors_.back()->fd()));
    if (watch_->held) watch_->held();
  }
  if (!address_.is_any() && !relay_descriptors_.empty()) next_try_ = os::Time::max();
}

void Port4791Relay::attend() {
  const std::unique_lock guard(mutex_, std::try_to_lock);
  if (guard) try_to_open(os::coarse_now());
}

Port4791Relay::Look Port4791Relay::look(std::uint32_t queue_pair, const Visit& visit) {
  if (watch_ != nullptr) watch_->looks.fetch_add(1, std::memory_order_relaxed);
  return take_some(queue_pair, visit);
}

// No endpoint has queue pair 0.
Port4791Relay::Look Port4791Relay::stand_in() { return take_some(0, {}); }

Port4791Relay::Look Port4791Relay::take_some(std::uint32_t queue_pair, const Visit& visit) {
  Look look;
  const std::unique_lock guard(mutex_, std::try_to_lock);
  if (!guard) return look;
  try_to_open(os::coarse_now());
  look.packets = receive_set_.take(kAtOnce, kAtOnce,
                                   [&](const ReceiveSocket& socket, const os::Datagram& packet) {
                                     take(*socket.socket, packet, queue_pair, visit);
                                   });
  look.more = receive_set_.has_more();
  if (receive_set_.errors_seen() || std::exchange(errors_seen_, false)) take_errors();
  return look;
}

// A relay header has an opcode that nothing is known about: so none is ever put into another one.
// The ICRC of a packet for the endpoint that looks is checked by that endpoint. With IPv4 any
// identification is right: foreign peers choose theirs, and a socket does not see it.
void Port4791Relay::take(os::UdpSocket& relay, const os::Datagram& packet, std::uint32_t queue_pair,
                         const Visit& visit) {
  wire::Packet headers;
  if (wire::parse(packet.bytes, headers) != wire::Malformed::kNone) {
    stats_.add_shared(Stat::kRelayMalformed);
  } else if (headers.destination == wire::kCmQpn) {
    take_mad(relay, packet, headers);
  } else if (is_foreign(headers.destination) || headers.destination == wire::kMulticastQpn) {
    stats_.add_shared(Stat::kRelayUnknownQp);
  } else if (headers.destination == queue_pair) {
    stats_.add_shared(Stat::kRelayDelivered);
    visit(packet);
  } else if (!is_claimed(name_of_endpoint, addressee(packet, headers.destination))) {
    stats_.add_shared(Stat::kRelayUnreachable);
  } else if (!wire::check_icrc(route_between(packet.from, packet.to), packet.bytes)) {
    stats_.add_shared(Stat::kRelayIcrcErrors);
  } else {
    hand_on(relay, packet, headers.destination);
  }
}

// Else a packet from anywhere, with this host as its source, would reach any socket that has a port
// from 32768 on. The kernel keeps the names: no packet makes this process remember anything.
bool Port4791Relay::is_claimed(NameOf name_of, os::SocketAddress address) {
  if (names_.has(name_of(address))) return true;
  static constexpr std::array<std::byte, 16> kAny{};
  address = os::SocketAddress::of_host(address.family(), kAny.data(), address.port());
  return names_.has(name_of(address));
}

// The ICRC first: it costs less than a name. The process of the endpoint that looks is no
// exception: its packets go through the socket, too.
void Port4791Relay::take_mad(os::UdpSocket& relay, const os::Datagram& packet,
                             const wire::Packet& headers) {
  if (!wire::check_icrc(route_between(packet.from, packet.to), packet.bytes)) {
    stats_.add_shared(Stat::kRelayIcrcErrors);
    return;
  }
  const std::optional<wire::CmMad> mad = read_mad(headers);
  if (!mad) {
    stats_.add_shared(Stat::kRelayMalformed);
    return;
  }
  const std::optional<std::uint16_t> port = destination_port(mad->message);
  if (port && is_claimed(name_of_manager, addressee(packet, manager_at(*port)))) {
    hand_on(relay, packet, manager_at(*port));
  } else {
    stats_.add_shared(Stat::kRelayUnreachable);
    // Without a descriptor for the look nothing is known: the peer asks again.
    if (!port || names_.could_look()) refuse(relay, packet, headers.source, *mad, port);
  }
}

// A peer that gets no answer repeats its request for a minute. The answer is no longer than that.
// A requester of Weft asks the port, too: a listener there that foreign peers do not reach, and
// that is busy, would lose its peer by a refusal.
void Port4791Relay::refuse(os::UdpSocket& relay, const os::Datagram& packet, std::uint32_t qpn,
                           const wire::CmMad& mad, std::optional<std::uint16_t> port) {
  const std::optional<wire::CmMad> answer = refusal_of(mad);
  const bool of_weft = is_request_of_weft(mad);
  os::SocketAddress to = packet.from;
  if (!of_weft) to.set_port(wire::kUdpPort);
  if (!answer || !refusals_.may_send(to, os::coarse_now())) return;
  if (of_weft && port && os::has_listener(addressee(packet, manager_at(*port)))) return;
  const auto bytes = refusals_.write(*answer, packet.to, to, qpn);
  const os::SendOutcome outcome = relay.send(to, {}, bytes, bytes.size());
  errors_seen_ = errors_seen_ || outcome.errors_waiting;
  if (outcome.error == 0) stats_.add_shared(Stat::kRelayRefusals);
}

void Port4791Relay::hand_on(os::UdpSocket& relay, const os::Datagram& packet,
                            std::uint32_t queue_pair) {
  const std::size_t length = write_relayed(packet, queue_pair, relayed_);
  if (length == 0) {
    stats_.add_shared(Stat::kRelayMalformed);
    return;
  }
  const os::SendOutcome outcome =
      relay.send(addressee(packet, queue_pair), {}, {relayed_.data(), length}, length);
  errors_seen_ = errors_seen_ || outcome.errors_waiting;
  stats_.add_shared(outcome.error == 0 ? Stat::kRelayForwarded : Stat::kRelaySendErrors);
}

// ICMP errors of absent endpoints stay in the error queue until they are read.
void Port4791Relay::take_errors() {
  for (const auto& relay : relay_descriptors_) {
    while (const auto error = relay->next_error()) {
      if (error->what == os::UdpError::What::kPortUnreachable)
        stats_.add_shared(Stat::kRelayUnreachable);
    }
  }
}

std::size_t Port4791Relay::watch(os::WakeSet& set, std::size_t known) {
  const std::lock_guard guard(mutex_);
  while (known < relay_descriptors_.size() && set.add(relay_descriptors_[known]->fd()).ok())
    ++known;
  return known;
}

void Port4791Relay::count_overflows() {
  const std::lock_guard guard(mutex_);
  stats_.add_shared(Stat::kRelayOverflows, receive_set_.take_dropped());
}

}  // namespace weft::roce
