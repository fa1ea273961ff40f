// SPDX-License-Identifier: BSD-2-Clause
// What can a host do to an endpoint by messages of the connection manager? Input: a script of REQ,
// REP, RTU, REJ, DREQ, DREP and APR with any fields, of changed ones, of datagrams of all lengths,
// and of connections that programs ask for, accept and end.
#include <algorithm>
#include <array>
#include <deque>
#include <memory>
#include <optional>
#include <variant>

#include "input.h"
#include "link/connection.h"
#include "link_udp/rd_endpoint.h"
#include "loopback_host.h"
#include "memory/region_table.h"
#include "os/runtime_dir.h"
#include "playground.h"
#include "rdm/connection_message.h"
#include "rdm/flow_message.h"
#include "roce/path.h"
#include "wire/cm_message.h"

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

// One end of a connection, which hears each event once.
struct ProgramEnd final : link::ConnectionUser {
  void connected(std::uint32_t, std::shared_ptr<link::Flow> its_flow,
                 std::span<const std::byte>) override {
    require(!left && !established && !over, "connected twice, or after the end");
    established = true;
    flow = std::move(its_flow);
  }
  void failed(int, std::span<const std::byte> data) override {
    require(!left && !established && !over, "failed after the end");
    require(data.size() <= link::kMaxConnectionData, "too long data");
    over = true;
  }
  void ended() override {
    require(!left && established && !over, "the end of no connection");
    over = true;
    flow.reset();
  }

  link::ConnectionNumber number = 0;
  std::shared_ptr<link::Flow> flow;
  bool accepts = false;
  bool established = false;
  bool over = false;
  bool left = false;  // this end has ended it
};

// A listener's undecided requests.
class Undecided final : public link::ListenerUser {
 public:
  void requested(link::ConnectionNumber number, link::ConnectionRequest request) override {
    require(request.data.size() <= link::kMaxConnectionData, "too long data");
    requests.emplace_back(number, std::move(request));
  }
  void withdrawn(link::ConnectionNumber number) override {
    const auto gone =
        std::erase_if(requests, [&](const auto& each) { return each.first == number; });
    require(gone == 1, "the end of no request");
  }

  std::deque<std::pair<link::ConnectionNumber, link::ConnectionRequest>> requests;
};

// An endpoint, which listens, an acceptor beside it, and a peer that it has sent a REQ to. The peer
// knows what it was told, and guesses.
class Scene {
 public:
  explicit Scene(const fuzz::Directory& directory)
      : table_(std::move(memory::RegionTable::create(directory.path())).value()) {
    rdm::RdmOptions options;
    options.domain = DomainId{5};
    options.regions = memory::RegionTableView::open(directory.path(), table_->name()).value();
    timeouts_.connect_timeout = std::chrono::milliseconds(50);
    timeouts_.peer_timeout = std::chrono::milliseconds(1000);
    options.device = &timeouts_;
    for (std::size_t i = 0; i < 2; ++i) {
      auto socket = std::move(os::UdpSocket::bind(host_, roce::kReliableSocket)).value();
      addresses_[i] = options.name = socket.address();
      ports_[i] = std::move(roce::PacketPort::open(std::move(socket), wake_, {})).value();
      connections_[i].emplace(addresses_[i].port(), timeouts_.peer_timeout, os::random_number,
                              stats_);
      endpoints_[i] = std::make_unique<udp::RdEndpoint>(*ports_[i], *connections_[i], options);
    }
    require(connections_[0]->listen(8, undecided_).ok(), "no listener");
  }
  ~Scene() {
    for (ProgramEnd& each : ends_of_programs_) each.flow.reset();
    if (flow_ != nullptr) flow_->give_up(ends_);
    flow_.reset();
  }
  Scene(const Scene&) = delete;
  Scene& operator=(const Scene&) = delete;

  void step(Input& input) {
    const std::uint8_t choice = input.byte();
    if (choice >= 0xF8) return act(input);
    if (choice >= 0xF0) return connect();
    if (choice >= 0xD0) return send_any(input);
    const std::uint64_t transaction = draw_transaction(input);
    const auto mad = wire::write_cm({0, transaction, 0, draw(input)});
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
    if (length <= os::UdpSocket::kMaxDatagram) peer_.send(destination(input), length);
  }
  void poll() {
    for (const auto& each : endpoints_) each->poll(sink_);
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
      auto flow = endpoint_->connect(peer_.address());
      if (flow) flow_ = std::move(flow).value();
    }
    if (flow_ == nullptr) return;
    link::SendRequest request;
    request.operation = link::MessageOperation::kMessage;
    request.must_copy = true;
    flow_->send(request);
  }
  const os::SocketAddress& destination(Input& input) {
    return addresses_[input.byte() < 0xA0 ? 0 : 1];
  }
  // A program asks for a connection, answers a request or ends a connection.
  void act(Input& input) {
    constexpr std::size_t kMostEnds = 1000;
    const std::uint8_t choice = input.byte() % 4;
    if (choice == 3) return leave(input);
    if (ends_of_programs_.size() == kMostEnds) return;
    ProgramEnd& end = ends_of_programs_.emplace_back();
    if (choice == 0) {
      const auto number = connections_[0]->request(peer_.address(), {}, end);
      if (number) end.number = number.value();
      end.over = !number;
      return;
    }
    end.over = true;
    if (undecided_.requests.empty()) return;
    const auto [number, request] = std::move(undecided_.requests.front());
    undecided_.requests.pop_front();
    if (choice == 1) return connections_[0]->reject(number, request.data);
    connections_[0]->forward(number);
    const auto accepted = connections_[1]->accept(request, request.data, end);
    end.accepts = true;
    end.over = !accepted;
    if (accepted) end.number = accepted.value();
  }
  void leave(Input& input) {
    for (ProgramEnd& each : ends_of_programs_) {
      if (each.over || each.left || input.byte() >= 0x80) continue;
      each.left = true;
      if (each.flow != nullptr) each.flow->give_up(ends_);
      each.flow.reset();
      connections_[each.accepts ? 1 : 0]->disconnect(each.number);
    }
  }
  // A packet with any opcode of the flow, or of none.
  void send_any(Input& input) {
    const os::SocketAddress& to = destination(input);
    wire::Packet headers;
    headers.opcode = input.byte();
    headers.destination =
        input.byte() < 0xC0 ? roce::queue_pair_at(to.port()) : std::uint32_t{wire::kCmQpn};
    headers.end_to_end_context = input.byte() < 0xC0 ? rep_.eecn : input.byte();
    headers.queue_key = input.byte() < 0xC0 ? rep_.queue_key : 0;
    headers.psn = Psn(rep_.starting_psn).after(static_cast<int>(input.byte()) - 8);
    headers.syndrome = input.byte();
    headers.ack_request = input.byte() % 2 != 0;
    const std::size_t length = peer_.write(headers, fuzz::draw_length(input));
    if (length <= os::UdpSocket::kMaxDatagram) peer_.send(to, length);
  }
  void hear(const os::Datagram& datagram) {
    wire::Packet packet;
    if (wire::parse(datagram.bytes, packet) != wire::Malformed::kNone) return;
    if (packet.destination != wire::kCmQpn || packet.payload.size() < wire::kMadBytes) return;
    const auto mad = wire::parse_cm(packet.payload.first(wire::kMadBytes));
    if (!mad) return;
    if (const auto* req = std::get_if<wire::CmReq>(&mad->message)) {
      req_ = *req;
      transactions_[0] = mad->transaction;
    } else if (const auto* rep = std::get_if<wire::CmRep>(&mad->message)) {
      rep_ = *rep;
      transactions_[1] = mad->transaction;
    } else if (std::holds_alternative<wire::CmLap>(mad->message)) {
      transactions_[2] = mad->transaction;
    }
  }

  std::uint32_t communication_id(Input& input) {
    const std::uint8_t choice = input.byte();
    if (choice < 0x60) return req_.local_id;
    if (choice < 0xC0) return rep_.local_id;
    return choice & 7;
  }
  std::uint64_t draw_transaction(Input& input) {
    const std::uint8_t choice = input.byte();
    return choice < 0xC0 ? transactions_[choice % 3] : choice & 7;
  }
  rdm::Introduction introduce(Input& input) {
    rdm::Introduction me;
    me.endpoint_id = input.byte() & 3;
    me.queue_pair = roce::queue_pair_at(peer_.address().port());
    me.context = static_cast<std::uint32_t>(input.number({0, 0xFF'FFFF}));
    me.queue_key = input.byte();
    me.path_mtu = 64 * std::size_t{input.byte()};
    me.room = static_cast<std::uint32_t>(input.number({0, 0xFFFF'FFFF, 100'000}));
    return me;
  }
  wire::CmMessage draw(Input& input) {
    switch (input.byte() % 8) {
      case 0:
      case 1: {
        rdm::FlowRequest request;
        request.me = introduce(input);
        request.name = peer_.address();
        const unsigned other = input.byte() >= 0xF0 ? input.byte() : 0;
        if (input.byte() >= 0x80) request.continued = {draw_transaction(input), rep_.local_id};
        request.first = Psn(static_cast<std::uint32_t>(input.number({0, 0xFF'FFFF})));
        wire::CmReq req = rdm::write_request(request);
        req.service ^= other;
        req.local_id = communication_id(input);
        if (input.byte() >= 0x80) req.service = rdm::connection_service(addresses_[0].port());
        return req;
      }
      case 2: {
        const Psn first(static_cast<std::uint32_t>(input.number({0, 0xFF'FFFF})));
        wire::CmRep rep = rdm::write_reply({introduce(input), first});
        rep.local_id = communication_id(input);
        rep.remote_id = communication_id(input);
        return rep;
      }
      case 3:
        return wire::CmRtu{communication_id(input), communication_id(input), {}};
      case 4: {
        wire::CmRej rej;
        rej.local_id = communication_id(input);
        rej.remote_id = communication_id(input);
        rej.reason = static_cast<wire::CmReason>(input.byte() % 32);
        return rej;
      }
      case 5: {
        wire::CmDreq dreq{communication_id(input),
                          communication_id(input),
                          roce::queue_pair_at(destination(input).port()),
                          {}};
        std::ranges::copy(rdm::write_end({Psn(rep_.starting_psn).after(input.byte())}),
                          dreq.data.begin());
        return dreq;
      }
      case 6:
        return wire::CmDrep{communication_id(input), communication_id(input), {}};
      default: {
        wire::CmApr apr;
        apr.local_id = communication_id(input);
        apr.remote_id = communication_id(input);
        apr.status = input.byte() % 4;
        return apr;
      }
    }
  }

  const os::SocketAddress host_ = fuzz::host_of_fuzzer();
  Options timeouts_;
  std::unique_ptr<memory::RegionTable> table_;
  Undecided undecided_;
  std::deque<ProgramEnd> ends_of_programs_;  // outlive the endpoints
  std::array<os::SocketAddress, 2> addresses_;
  Sink sink_;
  Ends ends_;
  os::WakeSet wake_ = std::move(os::WakeSet::create()).value();
  std::array<std::unique_ptr<roce::PacketPort>, 2> ports_;
  Stats stats_;
  std::array<std::optional<rdm::PortConnections>, 2> connections_;
  std::array<std::unique_ptr<udp::RdEndpoint>, 2> endpoints_;
  const std::unique_ptr<udp::RdEndpoint>& endpoint_ = endpoints_[0];
  std::unique_ptr<link::Flow> flow_;
  fuzz::Sender peer_{host_};
  wire::CmReq req_;                              // of the endpoint, as far as it was heard
  wire::CmRep rep_;                              // the same
  std::array<std::uint64_t, 3> transactions_{};  // of its REQ, its REP and its probe
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
