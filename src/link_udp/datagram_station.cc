// SPDX-License-Identifier: BSD-2-Clause
// How does an endpoint send and receive messages that may be lost over the network?
#include "link_udp/datagram_station.h"

#include <cerrno>
#include <utility>

#include "datagram_hub.h"
#include "os/udp_path.h"
#include "roce/route.h"

namespace weft::udp {
namespace {

// An endpoint that was not there is not looked for again before.
constexpr auto kAbsence = std::chrono::milliseconds(20);
// As many messages are handed over at a time: receives are posted between polls.
constexpr unsigned kMessagesAtOnce = 64;
// Looking for notifications costs a system call.
constexpr unsigned kUnheard = 32;

}  // namespace

Result<std::unique_ptr<DatagramStation>> DatagramStation::create(os::UdpSocket socket,
                                                                 const DatagramOptions& options) {
  auto port = roce::PacketPort::open(std::move(socket), {options.capture, options.relay});
  if (!port) return port.error();
  return std::unique_ptr<DatagramStation>(
      std::make_unique<DatagramHub>(std::move(port).value(), options));
}

DatagramHub::DatagramHub(std::unique_ptr<roce::PacketPort> port, const DatagramOptions& options)
    : port_(std::move(port)),
      options_(options),
      queue_pair_(roce::queue_pair_at(port_->address().port())),
      sender_(port_->trains(), queue_pair_),
      sources_(options.first_source, options.most_sources) {
  port_->attach(queue_pair_, *this);
  port_->attach(wire::kMulticastQpn, *this);
}

Result<std::unique_ptr<link::Flow>> DatagramHub::connect(const os::SocketAddress& peer) {
  std::shared_ptr<Target>& target = targets_[peer.text()];
  if (target != nullptr && target->is_absent()) {
    if (os::coarse_now() < target->absent_until)
      return Error{ENOENT, "nobody is at " + peer.text()};
    target = nullptr;
  }
  if (target == nullptr) {
    const auto path = roce::path_from(port_->address(), peer);
    if (!path) return path.error();
    const os::SocketAddress& from = path.value().source;
    target = std::make_shared<Target>(Target{
        {from, peer, roce::route_between(from, peer)}, roce::queue_pair_at(peer.port()), {}});
  }
  return std::unique_ptr<link::Flow>(std::make_unique<DatagramFlow>(*this, target));
}

link::Outcome DatagramFlow::access(const link::AccessRequest&) {
  return link::Outcome::failed(EOPNOTSUPP);
}

link::Outcome DatagramFlow::atomic(const link::AtomicRequest&) {
  return link::Outcome::failed(EOPNOTSUPP);
}

// CNPs and ICMP errors are read here, too: a program that only sends never polls.
link::Outcome DatagramHub::send(Target& target, const link::SendRequest& request) {
  if (target.is_absent()) return link::Outcome::failed(ECONNREFUSED);
  if (++unheard_ >= kUnheard) {
    unheard_ = 0;
    port_->poll_notifications();
  }
  const os::Time now = std::chrono::steady_clock::now();
  const link::Outcome outcome =
      sender_.send(target.path, target.pace, target.queue_pair, request, now);
  if (port_->trains().met_errors()) port_->report_errors();
  return outcome;
}

void DatagramHub::unreachable(const os::UdpError& error) {
  const auto found = targets_.find(error.peer.text());
  if (found == targets_.end() || found->second == nullptr) return;
  found->second->absent_until = os::coarse_now() + kAbsence;
}

unsigned DatagramHub::poll(link::InboxSink& sink) {
  sender_.poll();
  if (!sink.takes_more()) return 0;
  unheard_ = 0;
  sink_ = &sink;
  return port_->poll(kMessagesAtOnce, kMessagesAtOnce);
}

// Every message arrives with its payload: there are no offers.
bool DatagramHub::accept(link::InboxSink& sink, const link::Offer&, std::span<const LocalRange>,
                         std::uint64_t, void* cookie) {
  sink.received(cookie, ECONNRESET);
  return true;
}

void DatagramHub::refuse(link::InboxSink& sink, std::uint32_t source) {
  if (sources_.refuse(source)) sink.source_closed(source, false);
}

// Datagrams have no disconnect: a source stays until its place is needed. State of a peer ends with
// its last user.
void DatagramHub::check_sources(link::InboxSink&) {
  const os::Time now = os::coarse_now();
  std::erase_if(targets_, [&](const auto& entry) {
    return entry.second.use_count() <= 1 &&
           (entry.second == nullptr || now >= entry.second->absent_until);
  });
}

link::Inbox::Activity DatagramHub::activity() const {
  if (sender_.has_kept() || port_->busy()) return Activity::kHigh;
  return targets_.empty() && sources_.empty() ? Activity::kNone : Activity::kLow;
}

bool DatagramHub::fall_asleep() {
  sender_.poll();
  sender_.keep_nothing();
  return port_->fall_asleep();
}

}  // namespace weft::udp
