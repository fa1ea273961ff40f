// SPDX-License-Identifier: BSD-2-Clause
// What do the tests of endpoints share? A private directory, nodes, two of them that know each
// other, and connected endpoints.
#pragma once

#include <gtest/gtest.h>

#include <deque>
#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <utility>

#include "device/device.h"
#include "messaging/endpoint.h"
#include "os/loopback_support.h"
#include "os/test_directory_support.h"

namespace weft::messaging::testing {

using std::chrono::milliseconds;
using Bytes = std::vector<std::byte>;
using device::Completion;
using Mode = ReceiveCall::Mode;
using os::loopback;
using RuntimeDir = os::TestDirectory;
using work::CompletionStatus;

inline Bytes pattern(std::size_t length, std::size_t seed) {
  Bytes bytes(length);
  for (std::size_t i = 0; i < length; ++i) {
    bytes[i] = static_cast<std::byte>((i * 2654435761u + seed * 40503u) >> 7);
  }
  return bytes;
}

struct Surroundings {
  std::shared_ptr<device::Device> device;
  std::size_t queue_size = 1024;
  milliseconds connect_timeout{60};
  std::size_t unexpected_limit = std::size_t{1} << 30;
  link::Service service = link::Service::kReliableDatagram;
  std::size_t rx_queue_size = 1024;
  AuthorizationPtr authorization = nullptr;
  AddressVector* addresses = nullptr;   // null: each node has its own
  const os::UdpPort* socket = nullptr;  // of a node on the network only; null: within the host
};

// An endpoint with an address vector, queues and counters of its own.
struct Node {
  AddressVector addresses{8};
  device::CompletionQueue tx;
  device::CompletionQueue rx;
  device::Counter remote_writes{true, device::WaitKind::kNone};
  device::Counter sends{true, device::WaitKind::kNone};
  os::SocketAddress address;
  DomainId domain;
  Options options;
  std::unique_ptr<Endpoint> endpoint;

  Node(const Surroundings& setup, std::uint16_t port, ReceiveQueue* receives = nullptr)
      : tx(setup.queue_size, true, device::WaitKind::kNone),
        rx(setup.rx_queue_size, true, device::WaitKind::kNone),
        address(setup.socket != nullptr ? setup.socket->address() : loopback(port)),
        domain(setup.device->new_domain()) {
    EndpointSetup wanted;
    wanted.device = setup.device;
    wanted.addresses = setup.addresses != nullptr ? setup.addresses : &addresses;
    wanted.receives = receives;
    wanted.bindings.tx = &tx;
    wanted.bindings.rx = &rx;
    wanted.bindings.counters[static_cast<std::size_t>(CounterEvent::kRemoteWrite)] = &remote_writes;
    wanted.bindings.counters[static_cast<std::size_t>(CounterEvent::kSend)] = &sends;
    wanted.place = address;
    if (setup.socket != nullptr) wanted.place = {*setup.socket, {false, true}};
    wanted.name = address;
    wanted.domain = domain;
    wanted.count_remote_writes = true;
    wanted.service = setup.service;
    wanted.authorization = setup.authorization;
    options.connect_timeout = setup.connect_timeout;
    options.unexpected_limit = setup.unexpected_limit;
    wanted.options = &options;
    auto opened = Endpoint::open(wanted);
    if (opened) endpoint = std::move(opened).value();
  }

  int send(PeerIndex peer, std::uint64_t tag, Bytes& bytes, void* context = nullptr,
           const std::function<void(SendCall&)>& change = {}) {
    const LocalRange sge{bytes.data(), bytes.size()};
    SendCall call;
    call.peer = peer;
    call.operation = link::MessageOperation::kTagged;
    call.tag = tag;
    call.sges = {&sge, 1};
    call.length = bytes.size();
    call.report.context = context;
    if (change) change(call);
    return endpoint->send(call);
  }
  int receive(std::uint64_t tag, Bytes& bytes, void* context = nullptr, PeerIndex source = kNoPeer,
              Mode mode = Mode::kPost) {
    return receive_in(endpoint->receives(), tag, bytes, context, source, mode);
  }
  static int receive_in(ReceiveQueue& queue, std::uint64_t tag, Bytes& bytes, void* context,
                        PeerIndex source = kNoPeer, Mode mode = Mode::kPost) {
    const LocalRange sge{bytes.data(), bytes.size()};
    ReceiveCall call;
    call.tagged = true;
    call.mode = mode;
    call.tag = tag;
    call.source = source;
    call.sges = {&sge, 1};
    call.report.context = context;
    return queue.receive(call);
  }
  static std::deque<Completion> take(device::CompletionQueue& queue) {
    std::deque<Completion> taken;
    device::CompletionQueue::Front front{};
    Completion failed;
    do {
      queue.pop(100, front, [&](const Completion& entry) { taken.push_back(entry); });
      if (queue.pop_error(failed)) taken.push_back(failed);
    } while (!queue.empty());
    return taken;
  }
};

struct EndpointTest : ::testing::Test {
  RuntimeDir dir;
  Surroundings setup{std::move(device::Device::get(dir.path())).value()};
  Node one{setup, 7001};
  Node two{setup, 7002};
  PeerIndex to_two = one.addresses.insert(two.address);
  PeerIndex to_one = two.addresses.insert(one.address);
  int contexts[8]{};

  void SetUp() override { ASSERT_TRUE(one.endpoint != nullptr && two.endpoint != nullptr); }
  // Drives both until `done`, for ten seconds at most.
  template <class Done>
  bool drive(Done done) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (!done() && std::chrono::steady_clock::now() < end) {
      if (one.endpoint) one.endpoint->port().progress();
      if (two.endpoint) two.endpoint->port().progress();
    }
    return done();
  }
  Completion next(Node& node, bool tx) {
    auto& queue = tx ? node.tx : node.rx;
    EXPECT_TRUE(drive([&] { return !queue.empty(); }));
    auto taken = Node::take(queue);
    EXPECT_EQ(taken.size(), 1u);
    return taken.empty() ? Completion{} : taken[0];
  }
  void settle() {
    for (int i = 0; i < 10; ++i) {
      one.endpoint->port().progress();
      if (two.endpoint) two.endpoint->port().progress();
    }
  }
};

// Writes down what it hears of a connection.
struct ConnectionLog final : ConnectionSink {
  int connections = 0;
  int partings = 0;
  std::vector<int> failures;
  Bytes data;  // that came with the last of them

  void connected(std::span<const std::byte> with) override {
    ++connections;
    data.assign(with.begin(), with.end());
  }
  void failed(int error, std::span<const std::byte> with) override {
    failures.push_back(error);
    data.assign(with.begin(), with.end());
  }
  void parted() override { ++partings; }
};

// A connected endpoint, and what it hears.
struct ConnectedEnd {
  ConnectionLog log;
  AddressVector no_addresses{0};
  std::unique_ptr<Endpoint> endpoint;

  void open(EndpointSetup setup) {
    setup.addresses = &no_addresses;
    setup.connection = &log;
    endpoint = std::move(Endpoint::open(std::move(setup))).value();
  }
  void request(const os::SocketAddress& listener, const Bytes& data = {}) {
    endpoint->exclusively([&] { endpoint->peer().request(listener, data); });
  }
  void accept(const link::ConnectionRequest& received, const Bytes& data = {}) {
    endpoint->exclusively([&] { endpoint->peer().accept(received, data); });
  }
  void disconnect(int error) {
    endpoint->exclusively([&] { endpoint->peer().disconnect(error); });
  }
  int send(Bytes& bytes, void* context = nullptr, PeerIndex peer = 0) {
    const LocalRange sge{bytes.data(), bytes.size()};
    SendCall call;
    call.peer = peer;
    call.sges = {&sge, 1};
    call.length = bytes.size();
    call.report.context = context;
    return endpoint->send(call);
  }
  int receive(Bytes& bytes, void* context = nullptr) {
    return receive_in(endpoint->receives(), bytes, context);
  }
  static int receive_in(ReceiveQueue& queue, Bytes& bytes, void* context) {
    const LocalRange sge{bytes.data(), bytes.size()};
    ReceiveCall call;
    call.sges = {&sge, 1};
    call.report.context = context;
    return queue.receive(call);
  }
};

// A port within the host that listens, and from which any message can be sent.
struct RequestPort final : link::InboxSink, link::ListenerUser, link::FlowSink {
  os::SocketAddress address;
  std::unique_ptr<device::Port> port;
  std::map<std::uint32_t, os::SocketAddress> senders;
  std::deque<std::pair<link::ConnectionNumber, link::ConnectionRequest>> requests;

  RequestPort(const std::shared_ptr<device::Device>& device, std::uint16_t number)
      : RequestPort(device, link::Place(loopback(number))) {}
  RequestPort(const std::shared_ptr<device::Device>& device, const link::Place& place)
      : address(place.address) {
    device::PortSetup setup;
    setup.name = address;
    setup.domain = device->new_domain();
    setup.listens = true;
    port = std::move(device::Port::open(device, place, setup)).value();
    EXPECT_TRUE(port->connections().listen(128, *this).ok());
  }
  ~RequestPort() override = default;

  // The oldest request, which is for an endpoint to accept from now on.
  link::ConnectionRequest take_request() {
    port->inbox().poll(*this);
    EXPECT_FALSE(requests.empty());
    if (requests.empty()) return {};
    auto [number, request] = std::move(requests.front());
    requests.pop_front();
    port->connections().forward(number);
    return std::move(request);
  }
  void reject_request(const Bytes& data) {
    port->inbox().poll(*this);
    ASSERT_FALSE(requests.empty());
    port->connections().reject(requests.front().first, data);
    requests.pop_front();
  }
  // A new source of that mailbox, which sends a control message.
  std::unique_ptr<link::Flow> say(const os::SocketAddress& to, const Bytes& bytes) const {
    auto flow = std::move(port->connect(to)).value();
    const LocalRange sge{const_cast<std::byte*>(bytes.data()), bytes.size()};
    link::SendRequest request;
    request.operation = link::MessageOperation::kControl;
    request.must_copy = true;
    request.sges = {&sge, 1};
    request.length = bytes.size();
    EXPECT_EQ(flow->send(request).state, link::Outcome::State::kDone);
    return flow;
  }
  bool is_refused(link::Flow& flow) { return flow.check_peer(*this) == link::PeerState::kRefuses; }

  void source_opened(std::uint32_t source, const os::SocketAddress& from) override {
    senders[source] = from;
  }
  void source_closed(std::uint32_t source, bool) override { port->end_connection_of(source); }
  void arrived(const link::Arrival& arrival) override {
    ASSERT_EQ(arrival.operation, link::MessageOperation::kControl);
    port->take_control(*this, arrival, senders[arrival.source]);
  }
  void received(void*, int) override {}
  void ended(void*, int, int) override {}
  void requested(link::ConnectionNumber number, link::ConnectionRequest request) override {
    requests.emplace_back(number, std::move(request));
  }
  void withdrawn(link::ConnectionNumber number) override {
    std::erase_if(requests, [&](const auto& each) { return each.first == number; });
  }
};

}  // namespace weft::messaging::testing
