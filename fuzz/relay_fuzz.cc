// SPDX-License-Identifier: BSD-2-Clause
// What can any host do to the relay of UDP port 4791, and to the endpoints behind it? Input: a
// script of datagrams of all lengths, from foreign peers to that port, or from there to an
// endpoint.
#include <algorithm>
#include <array>
#include <memory>
#include <vector>

#include "input.h"
#include "link_udp/ud_endpoint.h"
#include "loopback_host.h"
#include "roce/relay_set.h"
#include "wire/cm_message.h"

namespace {

using namespace weft;
using fuzz::Input;
using fuzz::require;

constexpr unsigned kInputsPerScene = 1024;

// What an endpoint may be told.
class Sink final : public link::InboxSink {
 public:
  void source_opened(std::uint32_t, const os::SocketAddress&) override {}
  void source_closed(std::uint32_t, bool) override {}
  void arrived(const link::Arrival& arrival) override {
    require(arrival.operation == link::MessageOperation::kDatagram, "no datagram arrives");
    require(arrival.length <= wire::kMaxPathMtu, "longer than a datagram");
    for (std::size_t i = 0; i < arrival.length; ++i)
      sum_ += static_cast<unsigned>(arrival.payload[i]);
  }
  void received(void*, int) override { fuzz::fail("a datagram was offered"); }

 private:
  unsigned sum_ = 0;  // so that every byte is read
};

// A manager of connections that reads what it is told.
class Manager final : public roce::PacketHandler {
 public:
  void take(const roce::PacketArrival& arrival) override {
    if (const auto mad = wire::parse_cm(arrival.packet.payload)) kinds_ += mad->message.index();
  }
  void take_cnp(const roce::PacketArrival&) override {}
  void unreachable(const os::UdpError&) override {}

 private:
  std::size_t kinds_ = 0;
};

// An endpoint that has the port, and one that is reached through it. The attacker has a foreign
// peer's socket; it cannot have port 4791, so relay headers that are believed come through the
// relay.
class Scene {
 public:
  Scene() {
    for (auto& each : endpoints_) {
      auto socket = std::move(os::UdpSocket::bind(host_, {})).value();
      ports_.push_back(socket.address());
      roce::PacketPortOptions options;
      options.relay = relay_descriptors_.at(host_);
      each.port = std::move(roce::PacketPort::open(std::move(socket), wake_, options)).value();
      each.endpoint = std::make_unique<udp::UdEndpoint>(*each.port, udp::UdOptions{});
      require(each.port->attach(manager_, roce::QpnUse::kManager, {}).ok(), "no queue pair 1");
    }
  }

  void step(Input& input) {
    wire::Packet headers;
    headers.opcode = input.byte();
    headers.destination = queue_pair(input);
    headers.source = input.byte();
    headers.queue_key = input.byte() < 0xC0 ? roce::kDatagramQueueKey : 0;
    headers.psn = Psn(input.byte());
    const std::uint8_t flags = input.byte();
    const bool packet = (flags & 3) != 0;
    const bool mad = headers.destination == wire::kCmQpn && (flags & 4) != 0;
    if (mad) write_mad(input, headers);
    const std::size_t payload = mad ? wire::kMadBytes : fuzz::draw_length(input);
    const std::size_t length = packet ? sender_.write(headers, payload) : payload;
    // Some bytes anywhere.
    for (unsigned i = flags >> 4; i != 0 && length != 0; --i) {
      sender_.bytes()[input.below(0x10000) % length] = static_cast<std::byte>(input.byte());
    }
    os::SocketAddress to = ports_[flags >> 2 & 1];
    if ((flags & 8) == 0) to.set_port(wire::kUdpPort);
    if (length <= os::UdpSocket::kMaxDatagram) sender_.send(to, length, (flags & 3) != 3);
  }
  void poll() {
    for (int i = 0; i < 2; ++i) {
      for (auto& each : endpoints_) each.endpoint->poll(sink_);
      while (relay_descriptors_.hand_on()) continue;
    }
    sender_.hear([](const os::Datagram&) {});
  }

 private:
  std::uint32_t queue_pair(Input& input) {
    const std::uint8_t choice = input.byte();
    if (choice < 0x80) return roce::queue_pair_at(ports_[choice & 1].port());
    if (choice < 0x90) return wire::kMulticastQpn;
    if (choice < 0xA0) return choice & 3;
    return static_cast<std::uint32_t>(input.word());
  }

  // A message for a manager here, or for none.
  void write_mad(Input& input, wire::Packet& headers) {
    headers.opcode =
        wire::opcode_of(wire::Transport::kUnreliableDatagram, wire::Operation::kSendOnly);
    headers.queue_key = wire::kCmQueueKey;
    const std::uint8_t choice = input.byte();
    const std::uint16_t port = choice < 0xC0 ? ports_[choice & 1].port() : input.byte();
    wire::CmMad mad;
    wire::CmReq req;
    wire::CmSidrReq resolve;
    wire::CmDreq dreq;
    req.service = resolve.service = wire::service_of(wire::kPortSpaceTcp, port);
    dreq.remote_id = std::uint32_t{port} << 16 | choice;
    if ((choice & 6) == 0) {
      mad.message = req;
    } else if ((choice & 6) == 2) {
      mad.message = resolve;
    } else {
      mad.message = dreq;
    }
    std::ranges::copy(wire::write_cm(mad), sender_.bytes().data() + wire::header_bytes(headers));
  }

  const os::SocketAddress host_ = fuzz::host_of_fuzzer();
  roce::RelaySet relay_descriptors_{Stats::discarded()};
  std::vector<os::SocketAddress> ports_;
  struct End {
    std::unique_ptr<roce::PacketPort> port;
    std::unique_ptr<udp::UdEndpoint> endpoint;
  };
  Manager manager_;  // outlives the ports
  os::WakeSet wake_ = std::move(os::WakeSet::create()).value();
  std::array<End, 2> endpoints_;
  fuzz::Sender sender_{host_};
  Sink sink_;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static std::unique_ptr<Scene> scene;
  static unsigned inputs = 0;
  if (inputs++ % kInputsPerScene == 0) {
    scene.reset();
    scene = std::make_unique<Scene>();
  }
  Input input(data, size);
  for (int steps = 0; steps < 16 && !input.empty(); ++steps) {
    scene->step(input);
    scene->poll();
  }
  return 0;
}
