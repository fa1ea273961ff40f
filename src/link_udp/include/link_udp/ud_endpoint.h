// SPDX-License-Identifier: BSD-2-Clause
// How does an endpoint send and receive messages that may be lost over the network?
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <unordered_map>

#include "base/result.h"
#include "link/flow.h"
#include "link/inbox.h"
#include "link/membership.h"
#include "link/port_link.h"
#include "roce/address_hash.h"
#include "roce/packet_port.h"
#include "roce/route.h"

namespace weft::udp {

class DatagramSender;
class Sources;
struct DatagramTarget;

// What an endpoint for datagrams is made of.
struct UdOptions {
  std::uint32_t first_source = 0;   // the inbox numbers sources from here on
  std::size_t most_sources = 4096;  // that it remembers; at least 1
  // Members of groups on this host receive what is sent here; false: another link serves them.
  bool loops_groups = true;
  std::uint32_t queue_key = roce::kDatagramQueueKey;  // of all peers: packets with another one drop
};

// The UDP link of unreliable datagrams: UD SEND packets of RoCEv2, with 4 bytes of
// immediate data where a message has data (IBTA 9.8, annex A17), over a packet port, as the
// endpoint that the port's address names. Every arrival is a link::MessageOperation::kDatagram with
// its payload; nothing is ever accepted or acknowledged. Sources are known by their addresses; of
// more than most_sources the one unheard of for longest closes. One thread at a time; flows and
// memberships are destroyed before their endpoint.
//
// With roce::PacketPortOptions::relay it also hears foreign peers (rdma_rxe, RNICs), which send to
// port 4791 whatever the queue pair is. All those of one host are one source: its address with port
// 4791.
//
// Flows take kDatagram only, of at most one path MTU (EMSGSIZE), and are never busy. A message
// leaves before send() returns, unless it may_linger and others left right before it since the last
// poll(): then it leaves with those after it, at the next poll() or fall_asleep() at the latest.
// While it is here, the flow is ready(). What the network does not carry is lost. A flow fails with
// ECONNREFUSED after an ICMP port unreachable. Neither ECN marks nor CNPs have an effect, so the
// packets have to leave as Not-ECT (RFC 3168, section 5).
class UdEndpoint final : public link::Inbox, public link::PortLink, roce::PacketHandler {
 public:
  // The port outlives it, and has neither an endpoint nor a member of groups.
  UdEndpoint(roce::PacketPort& port, const UdOptions& options);
  ~UdEndpoint() override;

  link::Inbox& inbox() override { return *this; }
  // The flow to the endpoint at `peer`, without a handshake. Errors: ENOENT for 20 ms after an ICMP
  // port unreachable, EHOSTUNREACH, ENETUNREACH and others of os::udp_path_to().
  Result<std::unique_ptr<link::Flow>> connect(const os::SocketAddress& peer) override;
  // Hears what is sent to a group, by the interface of this endpoint's address, or the one that
  // leads to the group where that is a wildcard. Errors: those of roce::GroupSocket::join().
  Result<link::Membership> join(const os::SocketAddress& group) override;
  // The flow to all members of a group, by the same interface. Errors: those of
  // roce::PacketPort::send_to_group().
  Result<std::unique_ptr<link::Flow>> connect_group(const os::SocketAddress& group) override;

  Activity activity() const override;
  unsigned poll(link::InboxSink& sink) override;
  bool accept(link::InboxSink& sink, const link::Offer&, std::span<const LocalRange>, std::uint64_t,
              void* cookie) override;
  void acknowledge(const link::Offer&) override {}
  void refuse(link::InboxSink& sink, std::uint32_t source) override;
  void check_sources(link::InboxSink& sink) override;
  bool fall_asleep() override;
  void wake_up() override { port_.wake_up(); }

 private:
  void take(const roce::PacketArrival& arrival) override;
  void take_cnp(const roce::PacketArrival&) override { port_.stats().add(Stat::kUnknownFlow); }
  void unreachable(const os::UdpError& error) override;

  roce::PacketPort& port_;
  const UdOptions options_;
  const std::uint32_t queue_pair_;
  const std::uint32_t group_queue_pair_;
  const std::unique_ptr<DatagramSender> sender_;
  const std::unique_ptr<Sources> sources_;
  std::unordered_map<os::SocketAddress, std::shared_ptr<DatagramTarget>, roce::AddressHash>
      targets_;
  link::InboxSink* sink_ = nullptr;  // of the current poll
};

}  // namespace weft::udp
