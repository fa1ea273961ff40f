// SPDX-License-Identifier: BSD-2-Clause
// How does an endpoint reach its peers, whichever link leads to them?
#include "device/port.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "joint_connections.h"
#include "joint_group.h"
#include "joint_inbox.h"
#include "link_shm/group.h"
#include "mailbox_connections.h"
#include "os/interfaces.h"
#include "relay_engine.h"
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

Port::~Port() = default;

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
  auto mailbox = shm::Mailbox::create(box);
  if (!mailbox) return mailbox.error();
  mailbox_ = std::move(mailbox).value();
  if (Status ok = wake_.add(mailbox_->wake_fd()); !ok) return ok;
  sender_.directory = device_->directory();
  sender_.address = setup.name;
  sender_.waker = &mailbox_->waker();
  sender_.eager_limit = std::min<std::size_t>(setup.options->eager_limit, shm::kMaxEager);
  sender_.service = setup.service;
  sender_.own_regions = device_->regions_of_users();
  if (setup.connected) sender_.geometry = shm::kConnectionGeometry;
  inbox_ = mailbox_.get();
  if (device_->capture() != nullptr) {
    recorder_ = std::make_unique<capture::Recorder>(
        device_->capture(), capture::RecorderOptions{setup.name, sender_.eager_limit});
  }
  return {};
}

wire::Tap* Port::network_tap() const {
  return device_->capture() != nullptr ? &device_->capture()->network() : nullptr;
}

Status Port::open_reliable(const PortSetup& setup) {
  rdm::RdmOptions wanted;
  wanted.name = setup.name;
  wanted.domain = setup.domain;
  wanted.served = setup.served;
  wanted.regions = device_->regions_of_users();
  wanted.counts_reads = setup.count_remote_reads;
  wanted.counts_writes = setup.count_remote_writes;
  wanted.takes_flows = !setup.connected && !setup.listens;
  wanted.device = setup.options;
  wanted.first_source = mailbox_ != nullptr ? kFirstRemoteSource : 0;
  wanted.met = setup.met_over_network;
  endpoint_ = std::make_unique<udp::RdEndpoint>(*packets_, wanted);
  inbox_ = endpoint_.get();
  return endpoint_->attached();
}

// Within the host a group is heard through the mailbox.
void Port::open_datagrams() {
  udp::UdOptions wanted;
  wanted.first_source = mailbox_ != nullptr ? kFirstRemoteSource : 0;
  wanted.loops_groups = mailbox_ == nullptr;
  datagrams_ = std::make_unique<udp::UdEndpoint>(*packets_, wanted);
  inbox_ = datagrams_.get();
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
  options.capture = network_tap();
  options.stats = stats_.get();
  auto relay = relay_for(socket.value().address(), setup);
  if (!relay) return relay.error();
  options.relay = std::move(relay).value();
  options.relays_datagrams = datagrams;
  if (!datagrams) options.arrivals = udp::RdEndpoint::kArrivals;
  auto packets = roce::PacketPort::open(std::move(socket).value(), wake_, options);
  if (!packets) return packets.error();
  packets_ = std::move(packets).value();
  if (!datagrams) return open_reliable(setup);
  open_datagrams();
  return {};
}

Result<std::unique_ptr<Port>> Port::open(std::shared_ptr<Device> device, const link::Place& place,
                                         const PortSetup& setup) {
  auto wake = os::WakeSet::create();
  if (!wake) return wake.error();
  std::unique_ptr<Port> port(new Port(std::move(device), std::move(wake).value(), setup.name));
  const bool nowhere = port->device_->directory().empty();
  if (nowhere && !place.links.udp) return Error{EACCES, port->device_->no_directory()};
  const bool shares = place.links.shm && !nowhere;
  const bool both = shares && place.links.udp;
  const Status opened = both     ? port->open_both(place, setup)
                        : shares ? port->open_mailbox(place.address, setup)
                                 : port->open_network(place, setup);
  if (!opened) return opened.error();
  if (setup.connected || setup.listens) port->open_connections(setup);
  if (port->recorder_ != nullptr) {
    port->inbox_ = &port->recorder_->listen(*port->inbox_, kFirstRemoteSource);
  }
  return port;
}

// The mailbox first: a peer that finds the socket finds the mailbox, too.
Status Port::open_both(const link::Place& place, const PortSetup& setup) {
  if (Status ok = open_mailbox(place.address, setup); !ok) return ok;
  if (Status ok = open_network(place, setup); !ok) return ok;
  joint_ = std::make_unique<JointInbox>(*mailbox_, *inbox_);
  inbox_ = joint_.get();
  return {};
}

void Port::open_connections(const PortSetup& setup) {
  connections_ = endpoint_ != nullptr ? &endpoint_->connections() : nullptr;
  if (mailbox_ == nullptr) return;
  MailboxConnections::Ways ways;
  ways.open_flow = [this](const os::SocketAddress& peer) { return open_outbox(peer); };
  ways.open_mads = [this](const os::SocketAddress& peer) {
    return shm::MadSender::open(sender_, peer);
  };
  if (recorder_ != nullptr) {
    ways.sent = [this](const os::SocketAddress& to, std::span<const std::byte> datagram) {
      recorder_->record_sent(to, datagram);
    };
  }
  near_connections_ =
      std::make_unique<MailboxConnections>(setup.name, *setup.options, ways, *stats_);
  connections_ = near_connections_.get();
  if (endpoint_ == nullptr) return;
  joint_connections_ =
      std::make_unique<JointConnections>(*near_connections_, endpoint_->connections());
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

// The endpoint of the network sets its own time whenever it falls asleep.
bool Port::fall_asleep() {
  endpoint_ != nullptr ? wake_.silence() : wake_.wake_in(os::Timer::kNever);
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

Result<std::unique_ptr<link::Flow>> Port::open_outbox(const os::SocketAddress& peer) {
  auto outbox = shm::Outbox::open(sender_, peer);
  if (!outbox) return outbox.error();
  return recorded(std::move(outbox).value(), peer);
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

Result<std::unique_ptr<link::Flow>> Port::connect(const os::SocketAddress& peer) {
  if (mailbox_ != nullptr) {
    auto outbox = open_outbox(peer);
    const int error = outbox ? 0 : outbox.error().code;
    const bool elsewhere = shm::means_absent(error) && joint_ != nullptr && is_elsewhere(peer);
    if (elsewhere) outbox = open_outbox(peer);  // it may have come meanwhile
    if (outbox || !elsewhere) return outbox;
  }
  if (datagrams_ != nullptr) return datagrams_->connect(peer);
  return endpoint_->connect(peer);
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

// The loopback leads nowhere else.
bool Port::groups_go_out() const {
  if (datagrams_ == nullptr) return false;
  const auto interfaces = os::usable_interfaces();
  if (!interfaces) return true;
  const os::Interface* owner = os::owner_of(interfaces.value(), sender_.address);
  return owner == nullptr || !owner->loopback;
}

std::unique_ptr<link::Flow> Port::recorded(std::unique_ptr<link::Flow> flow,
                                           const os::SocketAddress& peer) {
  if (recorder_ == nullptr) return flow;
  return recorder_->follow(std::move(flow), peer);
}

Result<link::Membership> Port::join(const os::SocketAddress& group) {
  if (recorder_ != nullptr) recorder_->know(group);
  if (mailbox_ == nullptr) return datagrams_->join(group);
  auto near = shm::join_group(device_->directory(), group, sender_.address);
  if (!near || !groups_go_out()) return near;
  auto far = datagrams_->join(group);
  if (!far) return far;
  return link::Membership(
      std::make_shared<std::pair<link::Membership, link::Membership>>(near.value(), far.value()));
}

Result<std::unique_ptr<link::Flow>> Port::connect_group(const os::SocketAddress& group) {
  if (mailbox_ == nullptr) return datagrams_->connect_group(group);
  auto near = recorded(std::make_unique<shm::GroupOutbox>(sender_, group), group);
  if (!groups_go_out()) return near;
  auto far = datagrams_->connect_group(group);
  if (!far) return far;
  return std::unique_ptr<link::Flow>(
      std::make_unique<JointGroupFlow>(std::move(near), std::move(far).value()));
}

}  // namespace weft::device
