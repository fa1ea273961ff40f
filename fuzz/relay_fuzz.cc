// SPDX-License-Identifier: BSD-2-Clause
// What can any host do to the relay of UDP port 4791, and to the endpoints behind it? Input: a
// script of datagrams of all lengths, from foreign peers to that port, or from there to an
// endpoint.
#include <array>
#include <memory>
#include <vector>

#include "input.h"
#include "link_udp/ud_endpoint.h"
#include "loopback_host.h"
#include "roce/relay_set.h"

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
    const std::size_t length =
        packet ? sender_.write(headers, fuzz::draw_length(input)) : fuzz::draw_length(input);
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

  const os::SocketAddress host_ = fuzz::host_of_fuzzer();
  roce::RelaySet relay_descriptors_{Stats::discarded()};
  std::vector<os::SocketAddress> ports_;
  struct End {
    std::unique_ptr<roce::PacketPort> port;
    std::unique_ptr<udp::UdEndpoint> endpoint;
  };
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
