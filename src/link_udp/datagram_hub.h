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
#include "roce/packet_port.h"
#include "sources.h"
#include "transport/pace.h"
#include "wire/packet.h"

namespace weft::udp {

// The one DatagramStation there is.
class DatagramHub final : public DatagramStation, roce::PacketHandler {
 public:
  DatagramHub(std::unique_ptr<roce::PacketPort> port, const DatagramOptions& options);

  Result<std::unique_ptr<link::Flow>> connect(const os::SocketAddress& peer) override;
  Result<std::unique_ptr<link::Membership>> join(const os::SocketAddress& group) override;
  Result<std::unique_ptr<link::Flow>> connect_group(const os::SocketAddress& group) override;
  const roce::PacketDrops& drops() const override { return port_->drops(); }
  std::string dropped_packets() const override { return port_->dropped_packets(); }
  std::uint64_t lost() const override;
  Activity activity() const override;

  unsigned poll(link::InboxSink& sink) override;
  bool accept(link::InboxSink& sink, const link::Offer&, std::span<const LocalRange>, std::uint64_t,
              void* cookie) override;
  void acknowledge(const link::Offer&) override {}
  void refuse(link::InboxSink& sink, std::uint32_t source) override;
  void check_sources(link::InboxSink& sink) override;
  int wake_fd() const override { return port_->wake_fd(); }
  bool fall_asleep() override;
  void ring() override { port_->ring(); }
  void wake_up() override { port_->silence(); }

 private:
  friend class DatagramFlow;
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
  void take(const roce::PacketArrival& arrival) override;
  void unreachable(const os::UdpError& error) override;
  // When the way is full (datagram_congestion.cc).
  void take_mark(const roce::PacketArrival& arrival);
  void take_cnp(const roce::PacketArrival& arrival) override;

  const std::unique_ptr<roce::PacketPort> port_;
  const DatagramOptions options_;
  const std::uint32_t queue_pair_;
  DatagramSender sender_;
  Sources sources_;
  std::unordered_map<std::string, std::shared_ptr<Target>> targets_;  // by address
  link::InboxSink* sink_ = nullptr;                                   // of the current poll
  unsigned unheard_ = 0;                                              // sends since CNPs were read
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
