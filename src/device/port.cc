// SPDX-License-Identifier: BSD-2-Clause
// How does an endpoint reach its peers, whichever link leads to them?
#include "device/port.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include "capture/recorder.h"
#include "device/device.h"
#include "joint_connections.h"
#include "joint_group.h"
#include "joint_inbox.h"
#include "link/place.h"
#include "link_shm/mailbox.h"
#include "link_udp/rd_endpoint.h"
#include "link_udp/ud_endpoint.h"
#include "mailbox_connections.h"
#include "os/interfaces.h"
#include "relay_engine.h"
#include "roce/packet_port.h"
#include "roce/path.h"
#include "roce/route.h"

namespace weft::device {
namespace {

// Bytes that a control message may have at most; a longer one is not read.
constexpr std::size_t kMaxControlBytes = 1024;

}  // namespace

Port::Port(std::shared_ptr<Device> device, os::WakeSet wake, const os::SocketAddress& name)
    : device_(std::move(device)),
      stats_(device_->stats().take(name.text())),
      wake_(std::move(wake)) {}

// Connections and links in the reverse order of their making: the last messages of connections go
// through the mailbox, which peers find until the network has ended.
Port::~Port() {
  joint_connections_.reset();
  near_connections_.reset();
  while (!links_.empty()) links_.pop_back();
}

Status Port::open_mailbox(const os::SocketAddress& address, const PortSetup& setup) {
  shm::MailboxOptions box;
  box.directory = device_->directory();
  box.address = address;
  box.domain = setup.domain;
  box.served = setup.served;
  box.table = device_->regions().name();
  box.counts_access = (setup.count_remote_reads ? shm::kCountsReads : 0) |
                      (setup.count_remote_writes ? shm::kCountsWrites : 0);
  box.service = setup.service;
  box.regions = device_->regions_of_users();
  if (setup.connected || setup.listens) {
    box.on_mad = [this](const os::SocketAddress& from, std::span<const std::byte> datagram) {
      take_datagram(from, datagram);
    };
  }
  box.sender.address = setup.name;
  box.sender.eager_limit = std::min<std::size_t>(setup.options->eager_limit, shm::kMaxEager);
  if (setup.connected) box.sender.geometry = shm::kConnectionGeometry;
  auto mailbox = shm::Mailbox::create(box);
  if (!mailbox) return mailbox.error();
  mailbox_ = mailbox.value().get();
  std::unique_ptr<link::PortLink> link = std::move(mailbox).value();
  if (device_->capture() != nullptr) {
    const capture::RecorderOptions wanted{setup.name, box.sender.eager_limit};
    auto recorder =
        std::make_unique<capture::Recorder>(device_->capture(), wanted, std::move(link));
    recorder_ = recorder.get();
    link = std::move(recorder);
  }
  links_.push_back(std::move(link));
  return wake_.add(mailbox_->wake_fd());
}

Status Port::open_reliable(const PortSetup& setup, std::uint32_t first_source) {
  rdm::RdmOptions wanted;
  wanted.name = setup.name;
  wanted.domain = setup.domain;
  wanted.served = setup.served;
  wanted.regions = device_->regions_of_users();
  wanted.counts_reads = setup.count_remote_reads;
  wanted.counts_writes = setup.count_remote_writes;
  wanted.takes_flows = !setup.connected && !setup.listens;
  wanted.device = setup.options;
  wanted.first_source = first_source;
  wanted.met = setup.met_over_network;
  auto endpoint = std::make_unique<udp::RdEndpoint>(*packets_, wanted);
  const Status attached = endpoint->attached();
  connections_ = &endpoint->connections();
  link_sets_time_ = true;
  links_.push_back(std::move(endpoint));
  return attached;
}

// None for datagrams at lower ports: a foreign peer takes their queue pairs for those of another
// foreign peer.
Result<std::shared_ptr<roce::Port4791Relay>> Port::relay_for(const os::SocketAddress& own,
                                                             const PortSetup& setup) {
  const bool datagrams = setup.service == link::Service::kDatagram;
  const bool reachable = datagrams && !roce::is_foreign(roce::queue_pair_at(own.port()));
  if (!setup.options->foreign_peers || !(setup.listens || reachable))
    return std::shared_ptr<roce::Port4791Relay>();
  auto engine = device_->relay_engine();
  if (!engine) return engine.error();
  relay_engine_ = std::move(engine).value();
  return relay_engine_->at(own);
}

Status Port::open_network(const link::Place& place, const PortSetup& setup) {
  if (place.port == nullptr) return Error{EINVAL, "no socket at " + place.address.text()};
  const bool datagrams = setup.service == link::Service::kDatagram;
  // No sender of datagrams reacts to ECN marks: Not-ECT.
  os::UdpSocket::SocketOptions wanted =
      datagrams ? os::UdpSocket::SocketOptions{} : roce::kReliableSocket;
  wanted.traffic_class |= place.traffic_class;
  auto socket = os::UdpSocket::over(*place.port, wanted);
  if (!socket) return socket.error();
  roce::PacketPortOptions options;
  if (device_->capture() != nullptr) options.capture = &device_->capture()->network();
  options.stats = stats_.get();
  auto relay = relay_for(socket.value().address(), setup);
  if (!relay) return relay.error();
  options.relay = std::move(relay).value();
  options.relays_datagrams = datagrams;
  if (!datagrams) options.arrivals = udp::RdEndpoint::kArrivals;
  auto packets = roce::PacketPort::open(std::move(socket).value(), wake_, options);
  if (!packets) return packets.error();
  packets_ = std::move(packets).value();
  const std::uint32_t first_source = mailbox_ != nullptr ? kFirstRemoteSource : 0;
  if (!datagrams) return open_reliable(setup, first_source);
  // Within the host a group is heard through the mailbox.
  const udp::UdOptions end{.first_source = first_source, .loops_groups = mailbox_ == nullptr};
  links_.push_back(std::make_unique<udp::UdEndpoint>(*packets_, end));
  return {};
}

// The mailbox first: a peer that finds the socket finds the mailbox, too.
Result<std::unique_ptr<Port>> Port::open(std::shared_ptr<Device> device, const link::Place& place,
                                         const PortSetup& setup) {
  auto wake = os::WakeSet::create();
  if (!wake) return wake.error();
  std::unique_ptr<Port> port(new Port(std::move(device), std::move(wake).value(), setup.name));
  const bool nowhere = port->device_->directory().empty();
  if (nowhere && !place.links.udp) return Error{EACCES, port->device_->no_directory()};
  const bool shares = place.links.shm && !nowhere;
  if (shares) {
    if (Status ok = port->open_mailbox(place.address, setup); !ok) return ok.error();
  }
  if (!shares || place.links.udp) {
    if (Status ok = port->open_network(place, setup); !ok) return ok.error();
  }
  port->inbox_ = &port->links_.front()->inbox();
  if (port->links_.size() > 1) {
    port->joint_ = std::make_unique<JointInbox>(*port->inbox_, port->links_.back()->inbox());
    port->inbox_ = port->joint_.get();
  }
  if (shares && (setup.connected || setup.listens)) port->open_near_connections(setup);
  return port;
}

void Port::open_near_connections(const PortSetup& setup) {
  MailboxConnections::Ways ways;
  ways.open_flow = [this](const os::SocketAddress& peer) { return links_.front()->connect(peer); };
  ways.open_mads = [this](const os::SocketAddress& peer) {
    return shm::MadSender::open(mailbox_->sender(), peer);
  };
  if (recorder_ != nullptr) {
    ways.sent = [this](const os::SocketAddress& to, std::span<const std::byte> datagram) {
      recorder_->record_sent(to, datagram);
    };
  }
  near_connections_ =
      std::make_unique<MailboxConnections>(setup.name, *setup.options, ways, *stats_);
  link::Connections* const far = std::exchange(connections_, near_connections_.get());
  if (far == nullptr) return;
  joint_connections_ = std::make_unique<JointConnections>(*near_connections_, *far);
  connections_ = joint_connections_.get();
}

void Port::take_control(link::InboxSink& sink, const link::Arrival& arrival,
                        const os::SocketAddress& address) {
  if (!is_of_connection(arrival, address)) inbox_->refuse(sink, arrival.source);
}

// The sender may write on: a copy is checked.
bool Port::is_of_connection(const link::Arrival& arrival, const os::SocketAddress& address) {
  std::array<std::byte, kMaxControlBytes> copy;
  const bool legible = arrival.payload != nullptr && arrival.length <= copy.size();
  const bool near = near_connections_ != nullptr && arrival.source < kFirstRemoteSource;
  if (!legible) return false;
  if (arrival.wants_ack) inbox_->acknowledge(arrival.offer);
  std::memcpy(copy.data(), arrival.payload, arrival.length);
  return near && near_connections_->take(arrival.source, address, {copy.data(), arrival.length});
}

void Port::take_datagram(const os::SocketAddress& from, std::span<const std::byte> datagram) {
  if (recorder_ != nullptr && from.length() != 0) recorder_->record_received(from, datagram);
  near_connections_->take_datagram(from, datagram);
}

void Port::end_connection_of(std::uint32_t source) {
  if (near_connections_ != nullptr) near_connections_->source_closed(source);
}

void Port::check_connections(bool at_once, const std::function<void()>& take_in) {
  if (near_connections_ != nullptr) near_connections_->check(at_once, take_in);
}

bool Port::connections_are_due() const {
  return near_connections_ != nullptr && near_connections_->due() <= os::coarse_now();
}

bool Port::fall_asleep() {
  link_sets_time_ ? wake_.silence() : wake_.wake_in(os::Timer::kNever);
  const bool quiet = inbox_->fall_asleep();
  wake_for_connections();
  return quiet;
}

void Port::wake_for_connections() {
  if (near_connections_ == nullptr) return;
  const os::Time due = near_connections_->due();
  if (due != os::Time::max()) wake_.wake_within(due - os::coarse_now());
}

bool Port::send_requests_again() {
  return near_connections_ != nullptr && near_connections_->send_again();
}

// True for a peer that is not to be found in the shared files, and never will be: it is on another
// host, or on this one in a place that shares no files with this process, or may not be reached. It
// is looked for once a tick: looking costs more than asking again.
bool Port::is_elsewhere(const os::SocketAddress& peer) {
  if (!os::is_local_address(peer.get())) return true;
  const os::Time now = os::coarse_now();
  if (now == searched_at_) return false;
  searched_at_ = now;
  return os::has_listener(peer);
}

bool Port::may_be_elsewhere(const os::SocketAddress& peer, int error) {
  return shm::means_absent(error) && (!os::is_local_address(peer.get()) || os::has_listener(peer));
}

// The peer may have come within the host between the two looks.
Result<std::unique_ptr<link::Flow>> Port::connect(const os::SocketAddress& peer) {
  auto flow = links_.front()->connect(peer);
  if (flow || links_.size() == 1) return flow;
  if (!shm::means_absent(flow.error().code) || !is_elsewhere(peer)) return flow;
  flow = links_.front()->connect(peer);
  return flow ? std::move(flow) : links_.back()->connect(peer);
}

std::vector<pid_t> Port::processes() const {
  if (mailbox_ == nullptr) return {};
  std::vector<pid_t> all = mailbox_->source_processes();
  if (near_connections_ != nullptr)
    near_connections_->each_process([&](int process) { all.push_back(process); });
  return all;
}

const Stats& Port::stats_now() {
  if (packets_ != nullptr) packets_->count_overflows();
  return *stats_;
}

// The loopback leads nowhere but to where the mailbox leads.
std::span<const std::unique_ptr<link::PortLink>> Port::links_of_groups() const {
  const std::span all(links_);
  if (all.size() == 1) return all;
  const auto interfaces = os::usable_interfaces();
  if (!interfaces) return all;
  const os::Interface* owner = os::owner_of(interfaces.value(), mailbox_->sender().address);
  return owner != nullptr && owner->loopback ? all.first(1) : all;
}

Result<link::Membership> Port::join(const os::SocketAddress& group) {
  auto all = std::make_shared<std::vector<link::Membership>>();
  for (const auto& each : links_of_groups()) {
    auto membership = each->join(group);
    if (!membership) return membership;
    all->push_back(std::move(membership).value());
  }
  return link::Membership(std::move(all));
}

Result<std::unique_ptr<link::Flow>> Port::connect_group(const os::SocketAddress& group) {
  std::vector<std::unique_ptr<link::Flow>> all;
  for (const auto& each : links_of_groups()) {
    auto flow = each->connect_group(group);
    if (!flow) return flow;
    all.push_back(std::move(flow).value());
  }
  if (all.size() == 1) return std::move(all.front());
  return std::unique_ptr<link::Flow>(std::make_unique<JointGroupFlow>(std::move(all)));
}

}  // namespace weft::device
