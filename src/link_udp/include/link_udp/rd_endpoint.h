// SPDX-License-Identifier: BSD-2-Clause
// How does an endpoint send and receive reliable datagrams over the network?
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/result.h"
#include "link/flow.h"
#include "link/inbox.h"
#include "link/port_link.h"
#include "rdm/engine.h"
#include "rdm/host.h"
#include "rdm/options.h"
#include "roce/packet_port.h"

namespace weft::udp {

// The UDP link of reliable datagrams: an engine over a packet port, as the endpoint that the port's
// address names. One thread at a time; flows are destroyed before their endpoint.
class RdEndpoint final : public link::Inbox, public link::PortLink, rdm::Host {
 public:
  // Of a port for it; more take memory, and its trains need few.
  static constexpr std::size_t kArrivals = 8;

  // A link of `connections`. Both outlive it; the port has neither an endpoint nor a manager of
  // connections.
  RdEndpoint(roce::PacketPort& port, rdm::PortConnections& connections,
             const rdm::RdmOptions& options);
  ~RdEndpoint() override;
  // Whether it gets the packets of its queue pairs. Errors: those of roce::PacketPort::attach().
  const Status& attached() const { return attached_; }

  link::Inbox& inbox() override { return *this; }
  // As rdm::RdmEngine::connect().
  Result<std::unique_ptr<link::Flow>> connect(const os::SocketAddress& peer) override {
    return engine_.connect(peer);
  }

  unsigned poll(link::InboxSink& sink) override { return engine_.poll(sink); }
  bool accept(link::InboxSink& sink, const link::Offer& offer, std::span<const LocalRange> sges,
              std::uint64_t length, void* cookie) override;
  void acknowledge(const link::Offer& offer) override { engine_.acknowledge(offer); }
  void refuse(link::InboxSink& sink, std::uint32_t source) override {
    engine_.refuse(sink, source);
  }
  void check_sources(link::InboxSink& sink) override {
    engine_.check_sources(sink);
    port_.count_overflows();
  }
  Activity activity() const override { return engine_.activity(); }
  bool fall_asleep() override;
  void wake_up() override;

 private:
  void drain();

  roce::PacketOutput& output() override { return *port_.output(port_.address().family()); }
  Received receive() override;
  Result<os::UdpPath> path_to(const os::SocketAddress& peer) override;
  void wake() override;
  os::Time now() override { return std::chrono::steady_clock::now(); }
  std::uint64_t random() override;

  roce::PacketPort& port_;
  std::vector<std::uint32_t> qpns_;
  Status attached_;
  bool asleep_ = false;
  rdm::RdmEngine engine_;
};

}  // namespace weft::udp
