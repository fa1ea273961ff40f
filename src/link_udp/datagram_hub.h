// SPDX-License-Identifier: BSD-2-Clause
// What does a station for datagrams consist of?
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <unordered_map>

#include "datagram_sender.h"
#include "link_udp/datagram_station.h"
#include "os/clock.h"
#include "os/event.h"
#include "os/interfaces.h"
#include "os/local_name.h"
#include "roce/congestion_notifier.h"
#include "roce/packet_check.h"
#include "roce/port4791_relay.h"
#include "roce/receive_set.h"
#include "sources.h"
#include "transport/pace.h"
#include "wire/packet.h"

namespace weft::udp {

// The one DatagramStation there is.
class DatagramHub final : public DatagramStation {
 public:
  DatagramHub(os::UdpSocket socket, const DatagramOptions& options);
  Status open();

  Result<std::unique_ptr<link::Flow>> connect(const os::SocketAddress& peer) override;
  Result<std::unique_ptr<link::Membership>> join(const os::SocketAddress& group) override;
  Result<std::unique_ptr<link::Flow>> connect_group(const os::SocketAddress& group) override;
  const roce::PacketDrops& drops() const override { return drops_; }
  std::string dropped_packets() const override;
  std::uint64_t lost() const override;
  Activity activity() const override;

  unsigned poll(link::InboxSink& sink) override;
  bool accept(link::InboxSink& sink, const link::Offer&, std::span<const LocalRange>, std::uint64_t,
              void* cookie) override;
  void acknowledge(const link::Offer&) override {}
  void refuse(link::InboxSink& sink, std::uint32_t source) override;
  void check_sources(link::InboxSink& sink) override;
  int wake_fd() const override { return wake_.fd(); }
  bool fall_asleep() override;
  void ring() override { bell_.set(); }
  void wake_up() override { bell_.clear(); }

 private:
  friend class DatagramFlow;
  friend class HeardGroup;
  // Where flows lead.
  struct Target {
    roce::Path path;
    std::uint32_t queue_pair = 0;
    // Until then the peer counts as absent, after an ICMP port unreachable. A forged one costs no
    // more than datagrams may lose in any case.
    os::Time absent_until{};
    bool is_absent() const { return absent_until != os::Time{}; }
    transport::Pace pace{};
  };

  // Sending (datagram_station.cc).
  link::Outcome send(Target& target, const link::SendRequest& request);
  // Receiving (datagram_packets.cc).
  void take(const roce::ReceiveSocket& socket, const os::Datagram& datagram, link::InboxSink& sink);
  void take_foreign(const os::Datagram& datagram, std::uint64_t group, link::InboxSink& sink);
  bool may_be_foreign(const roce::ReceiveSocket& socket, const os::Datagram& datagram) const;
  void hand_over(const wire::Packet& packet, const os::Datagram& datagram,
                 const os::SocketAddress& from, std::uint64_t group, link::InboxSink& sink);
  void take_errors();
  // When the way is full (datagram_congestion.cc).
  void take_mark(std::uint32_t sender, const os::SocketAddress& to, os::SocketAddress from);
  void take_cnp(const wire::Packet& packet, const os::SocketAddress& from);
  void poll_for_cnps();
  // Port 4791 (datagram_door.cc).
  bool time_to_look(bool idle);
  unsigned poll_relay(link::InboxSink& sink);
  void watch_relay();
  // Groups (datagram_groups.cc).
  struct Exit {  // by which groups are reached
    unsigned interface = 0;
    os::SocketAddress address;
  };
  Result<Exit> exit_to(const os::SocketAddress& group) const;

  os::UdpSocket socket_;
  const DatagramOptions options_;
  const std::uint32_t queue_pair_;
  os::LocalName name_;  // by which it is found from port 4791
  DatagramSender sender_;
  roce::ReceiveSet receive_set_;
  Sources sources_;
  os::Event bell_;
  os::EventSet wake_;
  std::unordered_map<std::string, std::shared_ptr<Target>> targets_;  // by address
  std::uint64_t dropped_before_ = 0;   // by the sockets of groups that were left
  std::size_t relay_descriptors_ = 0;  // descriptors of the relay in wake_
  unsigned hot_polls_ = 0;             // looks at the relay before they become seldom
  unsigned busy_ = 0;                  // polls that found something else
  os::Time looked_at_{};
  bool more_at_relay_ = false;
  roce::PacketCheck check_{options_.capture};
  roce::PacketDrops drops_;
  roce::CongestionNotifier notifier_;
  unsigned unheard_ = 0;  // sends since CNPs were read
};

// The way to one peer, or to a group, as an endpoint holds it.
class DatagramFlow final : public link::Flow {
 public:
  DatagramFlow(DatagramHub& hub, std::shared_ptr<DatagramHub::Target> target)
      : hub_(hub), target_(std::move(target)) {}
  ~DatagramFlow() override { hub_.sender_.finish(); }

  link::Outcome send(const link::SendRequest& request) override {
    return hub_.send(*target_, request);
  }
  link::Outcome access(const link::AccessRequest&) override;
  link::Outcome atomic(const link::AtomicRequest&) override;
  bool busy() const override { return false; }
  bool ready() const override { return hub_.sender_.has_kept(); }
  void progress(link::FlowSink&) override { hub_.sender_.flush(); }
  // Of a peer that is not there the next send tells.
  link::PeerState check_peer(link::FlowSink&) override { return link::PeerState::kAlive; }
  void give_up(link::FlowSink&) override {}
  int process() const override { return 0; }
  void set_asleep(bool) override {}

 private:
  DatagramHub& hub_;
  const std::shared_ptr<DatagramHub::Target> target_;
};

}  // namespace weft::udp
