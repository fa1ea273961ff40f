// SPDX-License-Identifier: BSD-2-Clause
// How does an endpoint send and receive messages that may be lost over the network?
#include "link_udp/ud_endpoint.h"

#include <cerrno>
#include <utility>

#include "datagram_flow.h"
#include "datagram_sender.h"
#include "roce/group_socket.h"
#include "roce/route.h"
#include "sources.h"

namespace weft::udp {
namespace {

// An endpoint that was not there is not looked for again before.
constexpr auto kAbsence = std::chrono::milliseconds(20);
// As many messages are handed over at a time: receives are posted between polls.
constexpr unsigned kMessagesAtOnce = 64;

}  // namespace

UdEndpoint::UdEndpoint(roce::PacketPort& port, const UdOptions& options)
    : port_(port),
      options_(options),
      queue_pair_(port.attach(*this, roce::QpnUse::kEndpoint, os::coarse_now()).value()),
      group_queue_pair_(port.attach(*this, roce::QpnUse::kGroups, os::coarse_now()).value()),
      sender_(std::make_unique<DatagramSender>(port_, queue_pair_, options.queue_key)),
      sources_(std::make_unique<Sources>(options.first_source, options.most_sources)) {}

UdEndpoint::~UdEndpoint() {
  for (const std::uint32_t qpn : {queue_pair_, group_queue_pair_}) {
    port_.detach(qpn, os::coarse_now());
  }
}

Result<std::unique_ptr<link::Flow>> UdEndpoint::connect(const os::SocketAddress& peer) {
  std::shared_ptr<DatagramTarget>& target = targets_[peer];
  if (target != nullptr && target->is_absent()) {
    if (os::coarse_now() < target->absent_until)
      return Error{ENOENT, "no endpoint at " + peer.text()};
    target = nullptr;
  }
  if (target == nullptr) {
    const auto path = roce::path_from(port_.address(), peer);
    if (!path) return path.error();
    const os::SocketAddress& from = path.value().source;
    target = std::make_shared<DatagramTarget>(DatagramTarget{
        {from, peer, roce::route_between(from, peer)}, roce::queue_pair_at(peer.port()), {}});
  }
  return std::unique_ptr<link::Flow>(std::make_unique<DatagramFlow>(*sender_, target));
}

void UdEndpoint::unreachable(const os::UdpError& error) {
  const auto found = targets_.find(error.peer);
  if (found == targets_.end() || found->second == nullptr) return;
  found->second->absent_until = os::coarse_now() + kAbsence;
}

unsigned UdEndpoint::poll(link::InboxSink& sink) {
  sender_->poll();
  if (!sink.takes_more()) return 0;
  sink_ = &sink;
  return port_.poll(kMessagesAtOnce, kMessagesAtOnce);
}

// Every message arrives with its payload: there are no offers.
bool UdEndpoint::accept(link::InboxSink& sink, const link::Offer&, std::span<const LocalRange>,
                        std::uint64_t, void* cookie) {
  sink.received(cookie, ECONNRESET);
  return true;
}

void UdEndpoint::refuse(link::InboxSink& sink, std::uint32_t source) {
  if (sources_->refuse(source)) sink.source_closed(source, false);
}

// Datagrams have no disconnect: a source stays until its place is needed. State of a peer ends with
// its last user.
void UdEndpoint::check_sources(link::InboxSink&) {
  port_.count_overflows();
  const os::Time now = os::coarse_now();
  std::erase_if(targets_, [&](const auto& entry) {
    return entry.second.use_count() <= 1 &&
           (entry.second == nullptr || now >= entry.second->absent_until);
  });
}

link::Inbox::Activity UdEndpoint::activity() const {
  if (sender_->has_kept() || port_.busy()) return Activity::kHigh;
  return targets_.empty() && sources_->empty() ? Activity::kNone : Activity::kLow;
}

bool UdEndpoint::fall_asleep() {
  sender_->poll();
  sender_->keep_nothing();
  return port_.fall_asleep();
}

void UdEndpoint::take(const roce::PacketArrival& arrival) {
  const wire::Packet& packet = arrival.packet;
  if (wire::transport_of(packet.opcode) != wire::Transport::kUnreliableDatagram) {
    port_.stats().add(Stat::kUnknownQp);
    return;
  }
  if (packet.queue_key != options_.queue_key) {
    port_.stats().add(Stat::kQkeyViolations);
    return;
  }
  link::Arrival message;
  message.operation = link::MessageOperation::kDatagram;
  message.source = sources_->number_of(arrival.from, *sink_);
  if (!sources_->listened_to(message.source)) return;
  message.has_data = (wire::layout_of(packet.opcode).headers & wire::kImmediate) != 0;
  message.data = packet.immediate;
  message.tag = arrival.group;
  message.length = packet.payload.size();
  message.payload = packet.payload.data();
  sink_->arrived(message);
}

Result<link::Membership> UdEndpoint::join(const os::SocketAddress& group) {
  auto socket = roce::GroupSocket::join(port_, group, link::group_number(group));
  if (!socket) return socket.error();
  return link::Membership(std::move(socket).value());
}

Result<std::unique_ptr<link::Flow>> UdEndpoint::connect_group(const os::SocketAddress& group) {
  const auto own = port_.send_to_group(group, options_.loops_groups);
  if (!own) return own.error();
  const os::SocketAddress& from = own.value();
  auto target = std::make_shared<DatagramTarget>(
      DatagramTarget{{from, group, roce::route_between(from, group)}, wire::kMulticastQpn, {}});
  return std::unique_ptr<link::Flow>(std::make_unique<DatagramFlow>(*sender_, std::move(target)));
}

}  // namespace weft::udp
