// SPDX-License-Identifier: BSD-2-Clause
// What can a host do to an endpoint by messages of the connection manager? Input: a script of REQ,
// REP, REJ, DREQ and DREP with any fields, of changed ones, and of datagrams of all lengths.
#include <memory>
#include <variant>

#include "input.h"
#include "link_udp/rd_endpoint.h"
#include "loopback_host.h"
#include "memory/region_table.h"
#include "playground.h"
#include "rdm/conn_message.h"
#include "roce/path.h"

namespace {

using namespace weft;
using fuzz::Input;
using fuzz::require;

constexpr unsigned kInputsPerScene = 128;

class Sink final : public link::InboxSink {
 public:
  void source_opened(std::uint32_t source, const os::SocketAddress&) override {
    require(source < 65'536, "a source's number without bound");
  }
  void source_closed(std::uint32_t, bool) override {}
  void arrived(const link::Arrival& arrival) override {
    if (arrival.payload == nullptr) return;
    for (std::size_t i = 0; i < arrival.length; ++i)
      sum_ += static_cast<unsigned>(arrival.payload[i]);
  }
  void received(void*, int) override {}

 private:
  unsigned sum_ = 0;  // so that every byte is read
};

// An endpoint, and a peer that it has sent a REQ to. The peer knows what it was told, and guesses.
class Scene {
 public:
  explicit Scene(const fuzz::Directory& directory)
      : table_(std::move(memory::RegionTable::create(directory.path())).value()) {
    auto socket = std::move(os::UdpSocket::bind(host_, roce::kReliableSocket)).value();
    address_ = socket.address();
    rdm::RdmOptions options;
    options.name = address_;
    options.domain = DomainId{5};
    options.regions = memory::RegionTableView::open(directory.path(), table_->name()).value();
    timeouts_.connect_timeout = std::chrono::milliseconds(50);
    timeouts_.peer_timeout = std::chrono::milliseconds(1000);
    options.device = &timeouts_;
    port_ = std::move(roce::PacketPort::open(std::move(socket), wake_, {})).value();
    endpoint_ = std::make_unique<udp::RdEndpoint>(*port_, options);
  }
  ~Scene() {
    if (flow_ != nullptr) flow_->give_up(ends_);
    flow_.reset();
  }
  Scene(const Scene&) = delete;
  Scene& operator=(const Scene&) = delete;

  void step(Input& input) {
    const std::uint8_t choice = input.byte();
    if (choice >= 0xF0) return connect();
    if (choice >= 0xD0) return send_any(input);
    const auto mad = rdm::write_conn_message(draw(input));
    wire::Packet headers;
    headers.opcode = opcode_of(wire::Transport::kUnreliableDatagram, wire::Operation::kSendOnly);
    headers.destination = headers.source = wire::kCmQpn;
    headers.queue_key = wire::kCmQueueKey;
    const std::size_t before = wire::header_bytes(headers);
    std::copy(mad.begin(), mad.end(), peer_.bytes().begin() + static_cast<std::ptrdiff_t>(before));
    const std::size_t length =
        peer_.write(headers, choice < 0xC0 ? mad.size() : fuzz::draw_length(input));
    if (choice >= 0x80) {
      for (unsigned i = choice & 7; i != 0; --i) {
        peer_.bytes()[before + input.below(wire::kMadBytes)] = static_cast<std::byte>(input.byte());
      }
    }
    if (length <= os::UdpSocket::kMaxDatagram) peer_.send(address_, length);
  }
  void poll() {
    endpoint_->poll(sink_);
    if (flow_ != nullptr) flow_->progress(ends_);
    peer_.hear([this](const os::Datagram& datagram) { hear(datagram); });
  }

 private:
  struct Ends final : link::FlowSink {
    void ended(void*, int, int) override {}
  };

  void connect() {
    if (flow_ == nullptr || flow_->check_peer(ends_) != link::PeerState::kAlive) {
      flow_.reset();
      auto flow = endpoint_->connect(peer_.address(), false);
      if (flow) flow_ = std::move(flow).value();
    }
    if (flow_ == nullptr) return;
    link::SendRequest request;
    request.operation = link::MessageOperation::kMessage;
    request.must_copy = true;
    flow_->send(request);
  }
  // A packet with any opcode of the flow, or of none.
  void send_any(Input& input) {
    wire::Packet headers;
    headers.opcode = input.byte();
    headers.destination =
        input.byte() < 0xC0 ? roce::queue_pair_at(address_.port()) : std::uint32_t{wire::kCmQpn};
    headers.end_to_end_context = input.byte() < 0xC0 ? rep_.me.context : input.byte();
    headers.queue_key = input.byte() < 0xC0 ? rep_.me.queue_key : 0;
    headers.psn = rep_.first.after(static_cast<int>(input.byte()) - 8);
    headers.syndrome = input.byte();
    headers.ack_request = input.byte() % 2 != 0;
    const std::size_t length = peer_.write(headers, fuzz::draw_length(input));
    if (length <= os::UdpSocket::kMaxDatagram) peer_.send(address_, length);
  }
  void hear(const os::Datagram& datagram) {
    wire::Packet packet;
    if (wire::parse(datagram.bytes, packet) != wire::Malformed::kNone) return;
    const auto said = rdm::read_conn_message(packet.payload);
    if (!said) return;
    if (const auto* req = std::get_if<rdm::ConnReq>(&*said)) req_ = *req;
    if (const auto* rep = std::get_if<rdm::ConnRep>(&*said)) rep_ = *rep;
  }

  std::uint32_t connection_id(Input& input) {
    const std::uint8_t choice = input.byte();
    if (choice < 0x60) return req_.me.connection_id;
    if (choice < 0xC0) return rep_.me.connection_id;
    return choice & 7;
  }
  std::size_t path_mtu(Input& input) { return 64 * std::size_t{input.byte()}; }
  rdm::Introduction introduce(Input& input) {
    rdm::Introduction me;
    me.connection_id = connection_id(input);
    me.station = input.byte() & 3;
    me.queue_pair = roce::queue_pair_at(peer_.address().port());
    me.context = static_cast<std::uint32_t>(input.number({0, 0xFF'FFFF}));
    me.queue_key = input.byte();
    me.path_mtu = path_mtu(input);
    me.room = static_cast<std::uint32_t>(input.number({0, 0xFFFF'FFFF, 100'000}));
    return me;
  }
  rdm::ConnMessage draw(Input& input) {
    switch (input.byte() % 5) {
      case 0: {
        rdm::ConnReq req;
        req.me = introduce(input);
        req.path_mtu = path_mtu(input);
        req.name = peer_.address();
        req.early_data.resize(input.byte() % (rdm::kMaxEarlyData + 1));
        if (input.byte() >= 0xF0) req.service = static_cast<link::Service>(input.byte());
        req.changes = input.byte() % 4;
        req.first = Psn(static_cast<std::uint32_t>(input.number({0, 0xFF'FFFF})));
        return req;
      }
      case 1: {
        rdm::ConnRep rep;
        rep.me = introduce(input);
        rep.connection_id = connection_id(input);
        rep.first = Psn(static_cast<std::uint32_t>(input.number({0, 0xFF'FFFF})));
        rep.path_mtu = path_mtu(input);
        return rep;
      }
      case 2: {
        rdm::ConnRej rej;
        rej.why = static_cast<rdm::ConnRej::Why>(input.byte() % 3);
        rej.connection_id = connection_id(input);
        rej.context = input.byte() < 0x80 ? req_.me.context : input.byte();
        return rej;
      }
      default: {
        rdm::Disconnect disconnect{input.byte() % 2 != 0, connection_id(input),
                                   connection_id(input)};
        if (input.byte() % 2 != 0) disconnect.expected = rep_.first.after(input.byte());
        return disconnect;
      }
    }
  }

  const os::SocketAddress host_ = fuzz::host_of_fuzzer();
  Options timeouts_;
  std::unique_ptr<memory::RegionTable> table_;
  os::SocketAddress address_;
  Sink sink_;
  Ends ends_;
  os::WakeSet wake_ = std::move(os::WakeSet::create()).value();
  std::unique_ptr<roce::PacketPort> port_;
  std::unique_ptr<udp::RdEndpoint> endpoint_;
  std::unique_ptr<link::Flow> flow_;
  fuzz::Sender peer_{host_};
  rdm::ConnReq req_;  // of the endpoint, as far as it was heard
  rdm::ConnRep rep_;  // the same
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const fuzz::Directory directory;
  static std::unique_ptr<Scene> scene;
  static unsigned inputs = 0;
  if (inputs++ % kInputsPerScene == 0) {
    scene.reset();
    scene = std::make_unique<Scene>(directory);
  }
  Input input(data, size);
  for (int steps = 0; steps < 32 && !input.empty(); ++steps) {
    scene->step(input);
    scene->poll();
  }
  return 0;
}
