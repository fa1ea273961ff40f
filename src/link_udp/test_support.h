// SPDX-License-Identifier: BSD-2-Clause
// What do the tests of endpoints share? Endpoints that are polled in turn, and sinks that write
// down.
#pragma once

#include <atomic>
#include <chrono>
#include <deque>
#include <functional>
#include <initializer_list>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "base/options.h"
#include "base/stats.h"
#include "bytes_test_support.h"
#include "link_udp/rd_endpoint.h"
#include "os/loopback_support.h"
#include "os/udp_socket.h"
#include "regions_test_support.h"
#include "roce/path.h"

namespace weft::udp::testing {

using namespace rdm;

using rdm::testing::kDomain;
using rdm::testing::Regions;
using roce::testing::Bytes;
using roce::testing::pattern;

// Writes down what arrives, and takes offers into scattered pieces unless told otherwise.
struct InboxLog final : link::InboxSink {
  struct Message {
    link::Arrival arrival;
    Bytes bytes;      // when it is in place
    int error = -1;   // of an accepted offer; -1 while it is not in place
    Bytes pieces[3];  // where it is taken to
  };
  struct Closed {
    std::uint32_t source;
    bool died;
    bool operator==(const Closed&) const = default;
  };
  RdEndpoint* endpoint = nullptr;
  bool takes = true;
  bool takes_urgently = false;  // even if not otherwise
  bool places = false;          // messages as they come
  bool accepts = true;
  bool acknowledges = true;
  std::uint64_t most = ~std::uint64_t{0};  // bytes of an offer that are taken
  std::deque<Message> messages;
  std::vector<std::pair<std::uint32_t, os::SocketAddress>> opened;
  std::vector<Closed> closed;
  std::vector<std::pair<Access, std::uint64_t>> accesses;

  std::vector<std::uint32_t> withdrawn_ones;  // by their exchanges

  void source_opened(std::uint32_t source, const os::SocketAddress& address) override {
    opened.emplace_back(source, address);
  }
  void source_closed(std::uint32_t source, bool died) override { closed.push_back({source, died}); }
  unsigned room() const override { return takes ? ~0U : 0; }
  bool takes_more_urgently(std::uint32_t) const override { return takes || takes_urgently; }
  bool arriving(const link::Arrival& arrival) override {
    if (!places) return false;
    Message& message = messages.emplace_back();
    message.arrival = arrival;
    accept(message);
    return true;
  }
  void arrived(const link::Arrival& arrival) override {
    Message& message = messages.emplace_back();
    message.arrival = arrival;
    if (arrival.payload != nullptr) {
      message.bytes.assign(arrival.payload, arrival.payload + arrival.length);
      message.error = 0;
      if (arrival.wants_ack && acknowledges) endpoint->acknowledge(arrival.offer);
    } else if (accepts && arrival.length != 0) {
      accept(message);
    }
  }
  void accept(Message& message) {
    const std::uint64_t length = std::min(message.arrival.length, most);
    message.pieces[0].resize(1);
    message.pieces[1].resize(length / 3);
    message.pieces[2].resize(length - 1 - length / 3);
    LocalRange pieces[3];
    for (int i = 0; i < 3; ++i) pieces[i] = {message.pieces[i].data(), message.pieces[i].size()};
    endpoint->accept(*this, message.arrival.offer, pieces, length, &message);
  }
  void accessed(std::uint32_t, Access access, std::span<const RegionKey> regions) override {
    for (const RegionKey key : regions) accesses.emplace_back(access, key.v);
  }
  void withdrawn(const link::Offer& offer) override { withdrawn_ones.push_back(offer.exchange); }
  void received(void* cookie, int error) override {
    Message& message = *static_cast<Message*>(cookie);
    message.error = error;
    for (const Bytes& each : message.pieces) {
      message.bytes.insert(message.bytes.end(), each.begin(), each.end());
    }
  }
};

// Writes down how requests ended, by the numbers that are their cookies.
struct FlowLog final : link::FlowSink {
  struct End {
    int error;
    int detail;
    bool operator==(const End&) const = default;
  };
  std::map<std::uint64_t, End> ended_ones;
  unsigned doubled = 0;
  void ended(void* cookie, int error, int detail) override {
    const auto number = reinterpret_cast<std::uint64_t>(cookie);
    if (!ended_ones.emplace(number, End{error, detail}).second) ++doubled;
  }
  bool has(std::uint64_t number) const { return ended_ones.contains(number); }
};

// An endpoint on this host.
struct Peer {
  os::SocketAddress address;
  InboxLog log;
  FlowLog ends;
  os::WakeSet wake = std::move(os::WakeSet::create()).value();
  Stats stats;
  std::unique_ptr<roce::PacketPort> port;
  std::unique_ptr<RdEndpoint> endpoint;
  std::vector<std::unique_ptr<link::Flow>> flows;

  explicit Peer(const RdmOptions& wanted = {}, const os::SocketAddress& at = os::loopback(0),
                wire::Tap* capture = nullptr) {
    auto socket = os::UdpSocket::bind(at, roce::kReliableSocket);
    RdmOptions options = wanted;
    address = options.name = socket.value().address();
    options.domain = kDomain;
    port = std::move(roce::PacketPort::open(std::move(socket).value(), wake,
                                            {capture, nullptr, RdEndpoint::kArrivals, &stats}))
               .value();
    endpoint = std::make_unique<RdEndpoint>(*port, options);
    log.endpoint = endpoint.get();
  }
  Peer(const Peer&) = delete;
  Peer& operator=(const Peer&) = delete;

  // In good order, while another thread polls the peers.
  void leave(Peer* other = nullptr) {
    std::atomic<bool> left{false};
    std::thread thread;
    if (other != nullptr) {
      thread = std::thread([&] {
        while (!left) other->poll();
      });
    }
    flows.clear();
    close();
    left = true;
    if (thread.joinable()) thread.join();
  }
  void close() {
    endpoint.reset();
    port.reset();
  }
  // Packets.
  std::uint64_t sent() const { return port->trains().packets(); }
  void poll() {
    if (endpoint == nullptr) return;
    endpoint->poll(log);
    for (const auto& flow : flows) flow->progress(ends);
  }
};

// Polls them in turn until that holds; false when it does not within 20 seconds.
inline bool until(std::initializer_list<Peer*> peers, const std::function<bool()>& holds) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (!holds()) {
    if (std::chrono::steady_clock::now() > end) return false;
    for (Peer* peer : peers) peer->poll();
  }
  return true;
}

// Without polling, the end of one endpoint would wait for the other.
inline void part(Peer& one, Peer& other) {
  one.leave(&other);
  other.leave();
}

// The way from one to another, which has answered; null when there is none.
inline link::Flow* connect(Peer& from, Peer& to) {
  auto flow = from.endpoint->connect(to.address);
  if (!flow) return nullptr;
  from.flows.push_back(std::move(flow).value());
  link::Flow* const path = from.flows.back().get();
  return until({&from, &to}, [&] { return path->reached(); }) ? path : nullptr;
}

// Options of an endpoint that waits for its peers as long as a test likes.
inline const Options& patient() {
  static const Options instance = [] {
    Options options;
    options.connect_timeout = std::chrono::hours(1);
    return options;
  }();
  return instance;
}

// A flow to an endpoint whose peers may access a region.
struct AccessFixture {
  Regions regions;
  Bytes region;
  Peer a;
  Peer b{[this] {
    RdmOptions options;
    options.regions = regions.open();
    return options;
  }()};
  link::Flow* flow = connect(a, b);

  explicit AccessFixture(Bytes bytes) : region(std::move(bytes)) {}
  ~AccessFixture() { part(a, b); }
};

// Sends bytes that stay until the message is done; asks again for as long as there is no room.
inline link::Outcome send(Peer& from, Peer& to, link::Flow& flow, std::uint64_t tag,
                          std::span<std::byte> bytes, bool until_delivered = false,
                          bool must_copy = false) {
  const std::size_t half = bytes.size() / 2;
  const LocalRange pieces[] = {{bytes.data(), half}, {bytes.data() + half, bytes.size() - half}};
  link::SendRequest request;
  request.operation = link::MessageOperation::kTagged;
  request.tag = tag;
  request.data = ~tag;
  request.has_data = tag % 2 != 0;
  request.until_delivered = until_delivered;
  request.must_copy = must_copy;
  request.pieces = pieces;
  request.length = bytes.size();
  request.cookie = reinterpret_cast<void*>(tag);
  link::Outcome outcome;
  until({&from, &to}, [&] {
    outcome = flow.send(request);
    return outcome.state != link::Outcome::State::kAgain;
  });
  return outcome;
}

}  // namespace weft::udp::testing
