// SPDX-License-Identifier: BSD-2-Clause
// How does an endpoint reach its peers, whichever link leads to them?
#include "device/port.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <optional>
#include <utility>

#include "base/warning.h"
#include "capture/recorder.h"
#include "device/device.h"
#include "device/port_totals.h"
#include "joint_group.h"
#include "joint_inbox.h"
#include "link/place.h"
#include "link_shm/mailbox.h"
#include "link_udp/rd_endpoint.h"
#include "link_udp/ud_endpoint.h"
#include "mailbox_connections.h"
#include "os/fd.h"
#include "os/interfaces.h"
#include "os/runtime_dir.h"
#include "relay_engine.h"
#include "roce/packet_port.h"
#include "roce/path.h"
#include "roce/route.h"

namespace weft::device {
namespace {

using FlowResult = Result<std::unique_ptr<link::Flow>>;

// Bytes that a control message may have at most; a longer one is not read.
constexpr std::size_t kMaxControlBytes = 1024;

// After an error of making a mailbox: the network serves in its place. A shortage of descriptors or
// memory would keep the endpoint from the network, too.
bool cannot_share(int error) { return error != EADDRINUSE && !os::is_shortage(error); }

}  // namespace

struct Port::Parts {
  Parts(std::shared_ptr<Device> its_device, const PortSetup& setup, Stats& its_stats,
        os::WakeSet& its_wake)
      : device(std::move(its_device)),
        stats(its_stats),
        wake(its_wake),
        connections(setup.name.port(), setup.options->peer_timeout, os::random_number, stats,
                    setup.authorization) {}
  // Connections and links end in the reverse order of their making: the last messages of
  // connections go through the mailbox, which peers find until the network has ended.
  ~Parts() {
    connections.stop_listening();
    near_connections.reset();
    while (!links.empty()) links.pop_back();
  }
  Parts(const Parts&) = delete;
  Parts& operator=(const Parts&) = delete;

  Status open_mailbox(const os::SocketAddress& address, const PortSetup& setup) {
    shm::MailboxOptions box;
    box.directory = device->directory();
    box.address = address;
    box.domain = setup.domain;
    box.served = setup.served;
    box.number = setup.number;
    box.authorization = setup.authorization;
    box.table = device->regions().name();
    box.counts_access = (setup.count_remote_reads ? shm::kCountsReads : 0) |
                        (setup.count_remote_writes ? shm::kCountsWrites : 0);
    box.service = setup.service;
    box.regions = device->regions_of_users();
    if (setup.connected || setup.listens) {
      box.on_mad = [this](const os::SocketAddress& from, std::span<const std::byte> datagram) {
        if (recorder != nullptr && from.length() != 0) {
          recorder->record_datagram(wire::CaptureDirection::kReceived, from, datagram);
        }
        near_connections->take_datagram(from, datagram);
      };
    }
    box.sender.address = setup.name;
    box.sender.eager_limit = std::min<std::size_t>(setup.options->eager_limit, shm::kMaxEager);
    if (setup.connected) box.sender.geometry = shm::kConnectionGeometry;
    auto created = shm::Mailbox::create(box);
    if (!created) return created.error();
    mailbox = created.value().get();
    std::unique_ptr<link::PortLink> link = std::move(created).value();
    if (device->capture() != nullptr) {
      auto around =
          std::make_unique<capture::Recorder>(device->capture(), setup.name, std::move(link));
      recorder = around.get();
      link = std::move(around);
    }
    links.push_back(std::move(link));
    return wake.add(mailbox->wake_fd());
  }

  // None for datagrams at lower ports: a foreign peer takes their queue pairs for those of another
  // foreign peer.
  Result<std::shared_ptr<roce::Port4791Relay>> relay_for(const os::SocketAddress& own,
                                                         const PortSetup& setup) {
    const bool datagrams = setup.service == link::Service::kDatagram;
    const bool reachable = datagrams && !roce::is_foreign(roce::queue_pair_at(own.port()));
    if (!setup.options->foreign_peers || !(setup.listens || reachable))
      return std::shared_ptr<roce::Port4791Relay>();
    auto engine = device->relay_engine();
    if (!engine) return engine.error();
    relay_engine = std::move(engine).value();
    return relay_engine->at(own);
  }

  Status open_network(const link::Place& place, const PortSetup& setup) {
    if (place.port == nullptr) return Error{EINVAL, "no socket at " + place.address.text()};
    const bool datagrams = setup.service == link::Service::kDatagram;
    // No sender of datagrams reacts to ECN marks: Not-ECT.
    os::UdpSocket::SocketOptions wanted =
        datagrams ? os::UdpSocket::SocketOptions{} : roce::kReliableSocket;
    wanted.traffic_class |= place.traffic_class;
    auto socket = os::UdpSocket::over(*place.port, wanted);
    if (!socket) return socket.error();
    roce::PacketPortOptions options;
    if (device->capture() != nullptr) options.capture = &device->capture()->network();
    options.stats = &stats;
    auto relay = relay_for(socket.value().address(), setup);
    if (!relay) return relay.error();
    options.relay = std::move(relay).value();
    options.relays_datagrams = datagrams;
    if (!datagrams) options.arrivals = udp::RdEndpoint::kArrivals;
    auto opened = roce::PacketPort::open(std::move(socket).value(), wake, options);
    if (!opened) return opened.error();
    packets = std::move(opened).value();
    const std::uint32_t first_source = mailbox != nullptr ? kFirstRemoteSource : 0;
    if (!datagrams) return open_reliable(setup, first_source);
    // Within the host a group is heard through the mailbox.
    udp::UdOptions end{.first_source = first_source, .loops_groups = mailbox == nullptr};
    if (setup.authorization != nullptr) end.queue_key = setup.authorization->queue_key();
    links.push_back(std::make_unique<udp::UdEndpoint>(*packets, end));
    return {};
  }

  Status open_reliable(const PortSetup& setup, std::uint32_t first_source) {
    rdm::RdmOptions wanted;
    wanted.name = setup.name;
    wanted.domain = setup.domain;
    wanted.served = setup.served;
    wanted.number = setup.number;
    wanted.authorization = setup.authorization;
    wanted.regions = device->regions_of_users();
    wanted.counts_reads = setup.count_remote_reads;
    wanted.counts_writes = setup.count_remote_writes;
    wanted.takes_flows = !setup.connected && !setup.listens;
    wanted.device = setup.options;
    wanted.first_source = first_source;
    wanted.remote_peer_seen = setup.remote_peer_seen;
    auto endpoint = std::make_unique<udp::RdEndpoint>(*packets, connections, wanted);
    Status attached = endpoint->attached();
    links.push_back(std::move(endpoint));
    return attached;
  }

  link::Inbox* join_inboxes() {
    link::Inbox& first = links.front()->inbox();
    if (links.size() == 1) return &first;
    joint = std::make_unique<JointInbox>(first, links.back()->inbox());
    return joint.get();
  }

  void open_near_connections(const PortSetup& setup) {
    shm::MadSink sent;
    if (recorder != nullptr) {
      sent = [this](const os::SocketAddress& to, std::span<const std::byte> datagram) {
        recorder->record_datagram(wire::CaptureDirection::kSent, to, datagram);
      };
    }
    near_connections.emplace(connections, *links.front(), mailbox->sender(), *setup.options, sent,
                             stats);
  }

  // Whether it belongs to a connection within the host. The sender may write on: a copy is checked.
  bool is_of_connection(link::Inbox& inbox, const link::Arrival& arrival,
                        const os::SocketAddress& address) {
    std::array<std::byte, kMaxControlBytes> copy;
    if (arrival.payload == nullptr || arrival.length > copy.size()) return false;
    if (arrival.wants_ack) inbox.acknowledge(arrival.offer);
    std::memcpy(copy.data(), arrival.payload, arrival.length);
    const bool same_host = near_connections && arrival.source < kFirstRemoteSource;
    return same_host &&
           near_connections->take(arrival.source, address, {copy.data(), arrival.length});
  }

  os::Time due() const { return near_connections ? near_connections->due() : os::Time::max(); }

  // True for a peer that is not to be found in the shared files, and never will be: it is on
  // another host, or on this one in a place that shares no files with this process, or may not be
  // reached. It is looked for once a tick: looking costs more than asking again.
  bool is_elsewhere(const os::SocketAddress& peer) {
    if (!os::is_local_address(peer.get())) return true;
    const os::Time now = os::coarse_now();
    return std::exchange(searched_at, now) != now && os::has_listener(peer);
  }

  // The loopback leads nowhere but to where the mailbox leads.
  std::span<const std::unique_ptr<link::PortLink>> links_of_groups() const {
    const std::span all(links);
    if (all.size() == 1) return all;
    const auto interfaces = os::usable_interfaces();
    if (!interfaces) return all;
    const os::Interface* owner = os::owner_of(interfaces.value(), mailbox->sender().address);
    return owner != nullptr && owner->loopback ? all.first(1) : all;
  }

  const std::shared_ptr<Device> device;
  Stats& stats;
  os::WakeSet& wake;
  // Datagrams of foreign peers come through this one, if they may.
  std::shared_ptr<RelayEngine> relay_engine = nullptr;
  std::unique_ptr<roce::PacketPort> packets = nullptr;
  std::vector<std::unique_ptr<link::PortLink>> links = {};  // the mailbox first
  shm::Mailbox* mailbox = nullptr;
  capture::Recorder* recorder = nullptr;  // of the mailbox, if wanted
  std::unique_ptr<link::Inbox> joint = nullptr;
  rdm::PortConnections connections;
  std::optional<MailboxConnections> near_connections = {};
  os::Time searched_at{};
};

Port::Port(std::shared_ptr<Stats> stats, os::WakeSet wake)
    : stats_(std::move(stats)), wake_(std::move(wake)) {}

Port::~Port() = default;

// The mailbox first: a peer that finds the socket finds the mailbox, too.
Result<std::unique_ptr<Port>> Port::open(std::shared_ptr<Device> device, const link::Place& place,
                                         const PortSetup& setup) {
  auto wake = os::WakeSet::create();
  if (!wake) return wake.error();
  bool shares = place.links.shm;
  if (device->directory().empty()) {
    if (!place.links.udp) return device->no_directory();
    if (shares) device->warn_of_network(device->no_directory());
    shares = false;
  }
  StatsFile& blocks = device->stats();
  auto stats = setup.totals != nullptr ? setup.totals->take(blocks, setup.name.text())
                                       : blocks.take(setup.name.text());
  std::unique_ptr<Port> port(new Port(std::move(stats), std::move(wake).value()));
  port->parts_ = std::make_unique<Parts>(std::move(device), setup, *port->stats_, port->wake_);
  Parts& parts = *port->parts_;
  Status opened;
  if (shares) opened = parts.open_mailbox(place.address, setup);
  if (!opened && parts.mailbox == nullptr && place.links.udp && cannot_share(opened.error().code)) {
    parts.device->warn_of_network(opened.error());
    shares = false;
    opened = {};
  }
  if (opened && (!shares || place.links.udp)) opened = parts.open_network(place, setup);
  if (!opened) return opened.error();
  port->inbox_ = parts.join_inboxes();
  const bool has_connections = setup.connected || setup.listens;
  if (has_connections && parts.mailbox != nullptr) parts.open_near_connections(setup);
  return port;
}

rdm::PortConnections& Port::connections() { return parts_->connections; }

void Port::take_control(link::InboxSink& sink, const link::Arrival& arrival,
                        const os::SocketAddress& address) {
  if (!parts_->is_of_connection(*inbox_, arrival, address)) inbox_->refuse(sink, arrival.source);
}

void Port::end_connection_of(std::uint32_t source) {
  if (parts_->near_connections) parts_->near_connections->source_closed(source);
}

void Port::check_connections(bool at_once, const std::function<void()>& take_in) {
  if (!parts_->near_connections) return;
  parts_->near_connections->check(at_once, [&] {
    take_in();
    return !parts_->mailbox->has_newcomers();
  });
}

bool Port::connections_are_due() const { return parts_->due() <= os::coarse_now(); }

// A reliable endpoint of the network sets its own time whenever it falls asleep.
bool Port::fall_asleep() {
  const bool sets_time = parts_->connections.link_by(cm::Carrier::kPackets) != nullptr;
  sets_time ? wake_.silence() : wake_.wake_in(os::Timer::kNever);
  const bool quiet = inbox_->fall_asleep();
  wake_for_connections();
  return quiet;
}

void Port::wake_for_connections() {
  const os::Time due = parts_->due();
  if (due != os::Time::max()) wake_.wake_within(due - os::coarse_now());
}

bool Port::send_requests_again() {
  return parts_->near_connections && parts_->near_connections->send_again();
}

namespace {

// Once a process: there may be many such peers.
void warn_of_version(const Error& error) {
  static std::atomic_flag warned;
  if (warned.test_and_set()) return;
  warn(error.message +
       ": the network is used in place of shared memory between builds of Weft "
       "whose formats differ");
}

}  // namespace

bool Port::may_be_elsewhere(const os::SocketAddress& peer, int error) {
  return shm::means_absent(error) && (!os::is_local_address(peer.get()) || os::has_listener(peer));
}

// The peer may have come within the host between the two looks.
FlowResult Port::connect(const os::SocketAddress& peer) {
  const auto& links = parts_->links;
  auto flow = links.front()->connect(peer);
  if (flow || links.size() == 1) return flow;
  if (flow.error().code == EPROTO) {
    warn_of_version(flow.error());
    return links.back()->connect(peer);
  }
  if (os::lacks_room(flow.error().code) && os::has_listener(peer)) {
    parts_->device->warn_of_network(flow.error());
    return links.back()->connect(peer);
  }
  if (!shm::means_absent(flow.error().code) || !parts_->is_elsewhere(peer)) return flow;
  flow = links.front()->connect(peer);
  return flow ? std::move(flow) : links.back()->connect(peer);
}

std::vector<pid_t> Port::processes() const {
  if (parts_->mailbox == nullptr) return {};
  std::vector<pid_t> all = parts_->mailbox->source_processes();
  if (parts_->near_connections)
    parts_->near_connections->each_process([&](int process) { all.push_back(process); });
  return all;
}

const Stats& Port::stats_now() {
  if (parts_->packets != nullptr) parts_->packets->count_overflows();
  return *stats_;
}

Result<link::Membership> Port::join(const os::SocketAddress& group) {
  auto all = std::make_shared<std::vector<link::Membership>>();
  for (const auto& each : parts_->links_of_groups()) {
    auto membership = each->join(group);
    if (!membership) return membership;
    all->push_back(std::move(membership).value());
  }
  return link::Membership(std::move(all));
}

FlowResult Port::connect_group(const os::SocketAddress& group) {
  std::vector<std::unique_ptr<link::Flow>> all;
  for (const auto& each : parts_->links_of_groups()) {
    auto flow = each->connect_group(group);
    if (!flow) return flow;
    all.push_back(std::move(flow).value());
  }
  if (all.size() == 1) return std::move(all.front());
  return FlowResult(std::make_unique<JointGroupFlow>(std::move(all)));
}

}  // namespace weft::device
