// SPDX-License-Identifier: BSD-2-Clause
// What becomes of packets that foreign peers send, which know no port but 4791?
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/stats.h"
#include "os/clock.h"
#include "os/local_name.h"
#include "os/udp_socket.h"
#include "os/wake_set.h"
#include "roce/receive_set.h"
#include "roce/refusals.h"
#include "roce/relay_header.h"
#include "roce/relay_set.h"

namespace weft::roce {

// Keeps UDP port 4791 of an address, where foreign peers send packets for all endpoints of this
// host: the queue pair number names the endpoint. The owner of the port forwards packets to the
// others (relay_header.h), and messages for queue pair 1 to the manager of connections that they
// name (mad_route.h); where there is none, it refuses requests itself. Other processes try to bind
// it about once a second, as long as look() or attend() is called. Any thread; one looks at a time.
class Port4791Relay {
 public:
  // Packets for the endpoint that looks.
  using Visit = std::function<void(const os::Datagram&)>;
  // What a look found.
  struct Look {
    unsigned packets = 0;
    bool more = false;  // that no descriptor tells of
  };

  // For endpoints at that address, which may be a wildcard. Packets are counted in `stats`, which
  // outlives it and may be shared by several relays.
  Port4791Relay(const os::SocketAddress& address, std::shared_ptr<RelayActivity> watch,
                Stats& stats)
      : address_(address), watch_(std::move(watch)), stats_(stats) {}
  ~Port4791Relay();
  Port4791Relay(const Port4791Relay&) = delete;
  Port4791Relay& operator=(const Port4791Relay&) = delete;

  // Tries to get the port, if it is time to.
  void attend();
  // The same; then takes a few dozen packets that have come. Those for `queue_pair` go to visit(),
  // which must not come back here; others are handed on. Nothing while another thread does that.
  Look look(std::uint32_t queue_pair, const Visit& visit);
  // The same without an endpoint: all packets are forwarded.
  Look stand_in();
  // Adds to a set, which has `known` of them, the descriptors that tell of packets: there may be
  // more of them after attend() and look(). Returns how many it has then.
  std::size_t watch(os::WakeSet& set, std::size_t known);
  // Counts the packets that the kernel has dropped since the last call for want of room.
  void count_overflows();

 private:
  std::vector<os::SocketAddress> missing() const;
  void try_to_open(os::Time now);
  Look take_some(std::uint32_t queue_pair, const Visit& visit);
  void take(os::UdpSocket& relay, const os::Datagram& packet, std::uint32_t queue_pair,
            const Visit& visit);
  void take_mad(os::UdpSocket& relay, const os::Datagram& packet, const wire::Packet& headers);
  void refuse(os::UdpSocket& relay, const os::Datagram& packet, std::uint32_t qpn,
              const wire::CmMad& mad, std::optional<std::uint16_t> port);
  void hand_on(os::UdpSocket& relay, const os::Datagram& packet, std::uint32_t queue_pair);
  // Whether that name is claimed for the address, or for the wildcard address with its port.
  using NameOf = std::string (*)(const os::SocketAddress&);
  bool is_claimed(NameOf name_of, os::SocketAddress address);
  void take_errors();

  const os::SocketAddress address_;
  const std::shared_ptr<RelayActivity> watch_;  // or null
  Stats& stats_;
  std::mutex mutex_;  // of all that follows
  os::Time next_try_{};
  std::vector<std::unique_ptr<os::UdpSocket>> relay_descriptors_;
  ReceiveSet receive_set_{16};
  bool errors_seen_ = false;  // that have come back from the network
  std::array<std::byte, kMaxRelayDatagram> relayed_;
  os::LocalNames names_;  // of endpoints and managers
  Refusals refusals_;
};

}  // namespace weft::roce
