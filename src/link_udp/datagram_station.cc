// SPDX-License-Identifier: BSD-2-Clause
// How does an endpoint send and receive messages that may be lost over the network?
#include "link_udp/datagram_station.h"

#include <cerrno>
#include <utility>

#include "datagram_hub.h"
#include "os/udp_path.h"
#include "roce/relay_header.h"
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
  auto hub = std::make_unique<DatagramHub>(std::move(socket), options);
  if (Status ok = hub->open(); !ok) return ok.error();
  return std::unique_ptr<DatagramStation>(std::move(hub));
}

DatagramHub::DatagramHub(os::UdpSocket socket, const DatagramOptions& options)
    : socket_(std::move(socket)),
      options_(options),
      queue_pair_(roce::queue_pair_at(socket_.address().port())),
      sender_(socket_, queue_pair_, options.capture),
      sources_(options.first_source, options.most_sources) {
  receive_set_.add({&socket_, 0});
}

Status DatagramHub::open() {
  auto bell = os::Event::create();
  if (!bell) return bell.error();
  bell_ = std::move(bell).value();
  auto set = os::EventSet::create();
  if (!set) return set.error();
  wake_ = std::move(set).value();
  for (const int fd : {socket_.fd(), bell_.fd()}) {
    if (Status ok = wake_.add(fd); !ok) return ok;
  }
  if (options_.relay == nullptr) return {};
  // If another process has the name, it is found all the same.
  auto name = os::LocalName::claim(roce::name_of_endpoint(socket_.address()));
  if (!name && name.error().code != EADDRINUSE) return name.error();
  if (name) name_ = std::move(name).value();
  options_.relay->attend();
  return {};
}

Result<std::unique_ptr<link::Flow>> DatagramHub::connect(const os::SocketAddress& peer) {
  std::shared_ptr<Target>& target = targets_[peer.text()];
  if (target != nullptr && target->is_absent()) {
    if (os::coarse_now() < target->absent_until)
      return Error{ENOENT, "nobody is at " + peer.text()};
    target = nullptr;
  }
  if (target == nullptr) {
    const auto path = roce::path_from(socket_.address(), peer);
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
  if (++unheard_ >= kUnheard) poll_for_cnps();
  const os::Time now = std::chrono::steady_clock::now();
  const link::Outcome outcome =
      sender_.send(target.path, target.pace, target.queue_pair, request, now);
  if (sender_.met_errors()) take_errors();
  return outcome;
}

void DatagramHub::take_errors() {
  while (const auto error = socket_.next_error()) {
    const bool absent = error->what == os::UdpError::What::kPortUnreachable ||
                        error->what == os::UdpError::What::kHostUnreachable ||
                        error->what == os::UdpError::What::kNetUnreachable;
    const auto found = targets_.find(error->peer.text());
    if (!absent || found == targets_.end() || found->second == nullptr) continue;
    found->second->absent_until = os::coarse_now() + kAbsence;
  }
}

unsigned DatagramHub::poll(link::InboxSink& sink) {
  sender_.poll();
  if (!sink.takes_more()) return 0;
  unheard_ = 0;
  unsigned count = receive_set_.take(
      kMessagesAtOnce, [&](const roce::ReceiveSocket& socket, const os::Datagram& datagram) {
        take(socket, datagram, sink);
      });
  if (options_.relay != nullptr && time_to_look(count == 0)) count += poll_relay(sink);
  const bool came_back = receive_set_.met_errors();
  if (sender_.met_errors() || came_back) take_errors();
  return count;
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
  if (sender_.has_kept() || receive_set_.has_more() || hot_polls_ != 0) return Activity::kHigh;
  return targets_.empty() && sources_.empty() ? Activity::kNone : Activity::kLow;
}

bool DatagramHub::fall_asleep() {
  bell_.clear();
  sender_.poll();
  sender_.keep_nothing();
  if (options_.relay != nullptr) watch_relay();
  return !receive_set_.has_more() && !more_at_relay_;
}

}  // namespace weft::udp
