// SPDX-License-Identifier: BSD-2-Clause
// How does an endpoint reach its peers, whichever link leads to them?
#pragma once

#include <sys/types.h>

#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "base/authorization.h"
#include "base/options.h"
#include "base/result.h"
#include "base/stats.h"
#include "base/types.h"
#include "link/flow.h"
#include "link/inbox.h"
#include "link/membership.h"
#include "link/service.h"
#include "os/socket_address.h"
#include "os/wake_set.h"
#include "rdm/port_connections.h"

namespace weft::link {
struct Place;
}

namespace weft::device {

class Device;
class PortTotals;

// What an endpoint wants of its port.
struct PortSetup {
  os::SocketAddress name;  // by which peers know the endpoint
  DomainId domain;
  ServedAccess served;       // what peers may do to the regions of the domain through this port
  std::uint32_t number = 0;  // of the endpoint, which regions may be bound to; 0: none are
  bool count_remote_reads = false;  // arrivals tell of accesses by peers (FI_RMA_EVENT)
  bool count_remote_writes = false;
  link::Service service = link::Service::kReliableDatagram;
  bool connected = false;  // its flows are those of connections, each with little memory
  bool listens = false;    // for requests for connections: reached through port 4791, too
  AuthorizationPtr authorization = nullptr;  // the key that peers and regions must have, or none
  const Options* options = &Options::defaults();
  std::shared_ptr<PortTotals> totals = nullptr;  // that have its counters, too; or none
  // As rdm::RdmOptions::remote_peer_seen says; of datagrams nothing waits for a peer.
  std::function<void()> remote_peer_seen;
};

// An address, an inbox, and flows to peers. It has one or two links: within the host, over the
// network, or both in this order. It owns what they share: one packet port and one wake set; with
// the name of a port of datagrams (RelayPolls) at most 6 descriptors. Flows must be destroyed
// before their port. One thread at a time.
class Port {
 public:
  // Makes the port reachable at its place. Where the device has no directory, or no mailbox can be
  // made, its place is the network alone, with a warning, or that reason is the error if the
  // network is not wanted. Other errors: EADDRINUSE, EMFILE, ENFILE and ENOMEM of
  // shm::Mailbox::create(), those of os::UdpSocket::over() and roce::PacketPort::open().
  static Result<std::unique_ptr<Port>> open(std::shared_ptr<Device> device,
                                            const link::Place& place, const PortSetup& setup);
  ~Port();

  // Where messages arrive.
  link::Inbox& inbox() { return *inbox_; }
  // What threads sleep on, after fall_asleep() and until inbox().wake_up().
  os::WakeSet& wake_set() { return wake_; }
  // As link::Inbox::fall_asleep(); undoes a ring of the wake set.
  bool fall_asleep();
  // Has the time of a connection wake the threads that sleep.
  void wake_for_connections();
  // The connections of a port that is connected, or listens.
  rdm::PortConnections& connections();
  // A control message has arrived from a source, which has that address: it concerns a connection,
  // or the source is refused.
  void take_control(link::InboxSink& sink, const link::Arrival& arrival,
                    const os::SocketAddress& address);
  // After InboxSink::source_closed(): ends the connection, or request, of that source.
  void end_connection_of(std::uint32_t source);
  // As MailboxConnections::check() and send_again().
  void check_connections(bool at_once, const std::function<void()>& take_in);
  bool send_requests_again();
  // The time of a connection is over: check_connections() has something to do.
  bool connections_are_due() const;
  // Opens the way to a peer: through shared memory to one that can be found and reached there and
  // has room for this one, over the network to all others. Errors: ENOENT when no peer is there
  // (yet), or that was not found out, EHOSTUNREACH when no link leads to that host, others of
  // shm::Outbox::open(), udp::RdEndpoint::connect() and udp::UdEndpoint::connect(). Requests wait
  // for the peer for Options::connect_timeout.
  Result<std::unique_ptr<link::Flow>> connect(const os::SocketAddress& peer);
  // After a port within the host was not found, with that errno: true when it may be on another
  // host, or on this one in a place that shares no files with this process.
  static bool may_be_elsewhere(const os::SocketAddress& peer, int error);
  // Makes this port a member of a multicast group; leaves the group before the port goes. Errors:
  // EADDRINUSE when it is one, others of shm::join_group() and udp::UdEndpoint::join().
  Result<link::Membership> join(const os::SocketAddress& group);
  // Opens the way to all members of a group, and to those to come. Errors: those of
  // udp::UdEndpoint::connect_group().
  Result<std::unique_ptr<link::Flow>> connect_group(const os::SocketAddress& group);
  // The counters of this port.
  Stats& stats() { return *stats_; }
  // The same, up to date: those of the kernel are counted in, by system calls.
  const Stats& stats_now();
  // Processes that have sent to this port, or are to answer requests for connections.
  std::vector<pid_t> processes() const;

 private:
  struct Parts;

  Port(std::shared_ptr<Stats> stats, os::WakeSet wake);

  const std::shared_ptr<Stats> stats_;
  os::WakeSet wake_;
  std::unique_ptr<Parts> parts_;
  link::Inbox* inbox_ = nullptr;
};

}  // namespace weft::device
