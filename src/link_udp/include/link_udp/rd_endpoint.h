// SPDX-License-Identifier: BSD-2-Clause
// How does an endpoint send and receive reliable datagrams over the network?
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "base/result.h"
#include "link/flow.h"
#include "link/inbox.h"
#include "os/timer.h"
#include "rdm/engine.h"
#include "rdm/host.h"
#include "rdm/options.h"
#include "roce/packet_port.h"

namespace weft::udp {

// What an endpoint is made of.
struct RdOptions : rdm::RdmOptions {
  wire::Tap* capture = nullptr;  // hears of all packets, if not null; outlives the endpoint
};

// The Inbox of the UDP link: an engine for reliable datagrams over a packet port of its own. One
// thread at a time; flows are destroyed before their endpoint.
class RdEndpoint final : public link::Inbox, rdm::Host {
 public:
  // Speaks over that socket, which has roce::kSocketOptions. Errors: EMFILE and others of epoll,
  // eventfd and timerfd.
  static Result<std::unique_ptr<RdEndpoint>> create(os::UdpSocket socket, const RdOptions& options);
  ~RdEndpoint() override;

  // As rdm::RdmEngine::connect().
  Result<std::unique_ptr<link::Flow>> connect(const os::SocketAddress& peer, bool persists) {
    return engine_.connect(peer, persists);
  }
  // Packets that came, and packets that left.
  const roce::PacketDrops& drops() const { return port_->drops(); }
  rdm::Taken taken() const { return engine_.taken(); }
  std::uint64_t sent() const { return port_->trains().packets(); }

  unsigned poll(link::InboxSink& sink) override { return engine_.poll(sink); }
  bool accept(link::InboxSink& sink, const link::Offer& offer, std::span<const LocalRange> pieces,
              std::uint64_t length, void* cookie) override;
  void acknowledge(const link::Offer& offer) override { engine_.acknowledge(offer); }
  void refuse(link::InboxSink& sink, std::uint32_t source) override {
    engine_.refuse(sink, source);
  }
  void check_sources(link::InboxSink& sink) override { engine_.check_sources(sink); }
  Activity activity() const override { return engine_.activity(); }
  int wake_fd() const override { return port_->wake_fd(); }
  bool fall_asleep() override;
  void ring() override { port_->ring(); }
  void wake_up() override;

 private:
  RdEndpoint(std::unique_ptr<roce::PacketPort> port, os::Timer timer, const RdOptions& options);
  void part();

  std::span<std::byte> place() override { return port_->trains().place(); }
  void add(const roce::Path& path, std::size_t length) override {
    port_->trains().add(path, length);
  }
  void expect(std::size_t packets) override { port_->trains().expect(packets); }
  void flush() override { port_->trains().flush(); }
  bool pending() const override { return !port_->trains().empty(); }
  void send_cnp(const roce::Path& path, std::uint32_t sender, std::uint32_t token,
                os::Time now) override {
    port_->send_cnp(path, sender, token, now);
  }
  Received receive() override;
  Result<os::UdpPath> path_to(const os::SocketAddress& peer) override;
  void wake() override;
  os::Time now() override { return std::chrono::steady_clock::now(); }
  std::uint64_t random() override;

  const std::unique_ptr<roce::PacketPort> port_;
  os::Timer timer_;
  bool asleep_ = false;
  rdm::RdmEngine engine_;
};

}  // namespace weft::udp
