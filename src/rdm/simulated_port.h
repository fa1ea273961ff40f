// SPDX-License-Identifier: BSD-2-Clause
// Ports in the simulator whose programs make connections and write down what they hear.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "endpoint_log.h"
#include "regions_test_support.h"
#include "simulated_host.h"

namespace weft::rdm::testing {

// A port with its inbox, a listener, and ends of connections.
class ConnectedPort final : public link::InboxSink,
                            public link::FlowSink,
                            public link::ListenerUser {
 public:
  struct Received {
    std::uint32_t source = 0;
    std::uint64_t tag = 0;
    link::Offer offer;
    Bytes bytes;
    int error = 0;                      // -1 while an offer is being taken
    const ConnectionEnd* to = nullptr;  // null when the source belongs to no open connection
  };
  struct SourceEnd {
    std::uint32_t source = 0;
    bool died = false;
    bool operator==(const SourceEnd&) const = default;
  };

  ConnectedPort(Network& network, Regions& regions, const RdmOptions& options, std::uint8_t number,
                std::uint16_t port, std::size_t mtu = 1500, double full = 0)
      : host(network, number, port, mtu, full) {
    RdmOptions wanted = options;
    wanted.name = host.address;
    wanted.domain = kDomain;
    wanted.regions = regions.open();
    wanted.takes_flows = false;
    engine = host.make_engine(wanted);
    connections = &*host.connections;
  }
  ~ConnectedPort() override {
    for (const auto& end : ends) end->flow.reset();
  }
  ConnectedPort(const ConnectedPort&) = delete;
  ConnectedPort& operator=(const ConnectedPort&) = delete;

  ConnectionEnd& request(const os::SocketAddress& listener, const Bytes& data = {}) {
    ConnectionEnd& end = *ends.emplace_back(std::make_unique<ConnectionEnd>());
    end.number = connections->request(listener, data, end).value();
    return end;
  }
  // Accepts a request that `listener` has received; null when its sender is gone.
  ConnectionEnd* accept(ConnectedPort& listener, link::ConnectionNumber request,
                        const Bytes& data = {}) {
    ConnectionEnd& end = *ends.emplace_back(std::make_unique<ConnectionEnd>());
    listener.connections->forward(request);
    const auto number = connections->accept(listener.requests.at(request), data, end);
    listener.requests.erase(request);
    if (!number) return ends.pop_back(), nullptr;
    end.number = number.value();
    return &end;
  }
  // Gives up the flow and ends the connection, if it has not ended: its number may be another
  // one's by now.
  void leave(ConnectionEnd& end) {
    end.left = true;
    if (end.flow != nullptr) end.flow->give_up(*this);
    end.flow.reset();
    if (end.failures == 0 && end.ends == 0) connections->disconnect(end.number);
  }
  link::Outcome send(ConnectionEnd& end, std::uint64_t tag, Bytes& bytes, bool copy = true,
                     bool until_delivered = false) {
    const LocalRange sge{bytes.data(), bytes.size()};
    link::SendRequest request;
    request.operation = link::MessageOperation::kTagged;
    request.tag = tag;
    request.must_copy = copy;
    request.until_delivered = until_delivered;
    request.sges = {&sge, 1};
    request.length = bytes.size();
    request.cookie = &bytes;
    return end.flow->send(request);
  }

  // Polls. Returns when to poll again, if no packet arrives before.
  os::Time turn() {
    engine->poll(*this);
    for (const auto& end : ends) {
      if (end->flow != nullptr) end->flow->progress(*this);
    }
    return engine->fall_asleep();
  }
  std::vector<Received> from(std::uint32_t source) const {
    std::vector<Received> found;
    for (const Received& each : messages) {
      if (each.source == source) found.push_back(each);
    }
    return found;
  }

  SimulatedHost host;
  std::unique_ptr<RdmEngine> engine;
  PortConnections* connections = nullptr;
  std::vector<std::unique_ptr<ConnectionEnd>> ends;
  std::map<link::ConnectionNumber, link::ConnectionRequest> requests;
  std::vector<link::ConnectionNumber> withdrawn_requests;
  std::deque<Received> messages;
  std::map<void*, int> sent;  // errors of requests that have ended, by the buffer
  std::vector<std::uint32_t> opened;
  std::vector<SourceEnd> closed;
  bool takes = true;

 private:
  void source_opened(std::uint32_t source, const os::SocketAddress&) override {
    opened.push_back(source);
  }
  void source_closed(std::uint32_t source, bool died) override { closed.push_back({source, died}); }
  unsigned room() const override { return takes ? 1000 : 0; }
  void arrived(const link::Arrival& arrival) override {
    Received& one = messages.emplace_back(
        Received{arrival.source, arrival.tag, arrival.offer, Bytes(arrival.length), 0, nullptr});
    for (const auto& end : ends) {
      if (end->is_open() && !end->left && end->source == arrival.source) one.to = end.get();
    }
    if (arrival.payload != nullptr) {
      std::copy_n(arrival.payload, arrival.length, one.bytes.begin());
      if (arrival.wants_ack) engine->acknowledge(arrival.offer);
      return;
    }
    one.error = -1;
    const LocalRange sge{one.bytes.data(), one.bytes.size()};
    engine->accept(*this, arrival.offer, {&sge, 1}, arrival.length, &one);
  }
  void received(void* cookie, int error) override { static_cast<Received*>(cookie)->error = error; }
  void ended(void* cookie, int error, int) override { sent.emplace(cookie, error); }
  void requested(link::ConnectionNumber number, link::ConnectionRequest request) override {
    requests.emplace(number, std::move(request));
  }
  void withdrawn(link::ConnectionNumber number) override {
    requests.erase(number);
    withdrawn_requests.push_back(number);
  }
};

// Hosts with ports, and the packets between them. Nothing but a port unreachable answers at others.
class ConnectedWorld {
 public:
  ConnectedWorld(const Weather& weather, double marks, std::uint64_t seed)
      : network(weather, marks, seed) {}

  ConnectedPort& add(const RdmOptions& options, std::uint8_t number, std::uint16_t port,
                     std::size_t mtu = 1500, double full = 0) {
    ports_.push_back(
        std::make_unique<ConnectedPort>(network, regions_, options, number, port, mtu, full));
    looks_.push_back(network.now);
    return *ports_.back();
  }
  // The process of that port ends without a word.
  void kill(const ConnectedPort& port) {
    for (std::size_t i = 0; i < ports_.size(); ++i) {
      if (ports_[i].get() != &port) continue;
      ports_.erase(ports_.begin() + static_cast<std::ptrdiff_t>(i));
      looks_.erase(looks_.begin() + static_cast<std::ptrdiff_t>(i));
      return;
    }
  }
  // Goes on until that holds; false when it does not within `limit`.
  template <class Holds>
  bool until(Holds holds, os::Time::duration limit = std::chrono::minutes(10)) {
    const os::Time end = network.now + limit;
    while (!holds()) {
      const auto next = std::ranges::min_element(looks_);
      const os::Time at = std::max(network.now, std::min(*next, network.next()));
      if (at > end) return network.now = end, false;
      network.now = at;
      if (network.next() <= at) {
        deliver(network.take());
      } else {
        const auto place = static_cast<std::size_t>(next - looks_.begin());
        looks_[place] = std::max(ports_[place]->turn(), at + std::chrono::microseconds(1));
      }
    }
    return true;
  }
  void go_on_for(os::Time::duration time) {
    until([] { return false; }, time);
  }
  // Calls from outside may have given the ports something to do.
  void wake() { std::ranges::fill(looks_, network.now); }
  // Nothing is to be done any more, unless packets arrive.
  bool is_quiet() {
    return network.next() == os::Time::max() && std::ranges::all_of(ports_, [](const auto& port) {
             return port->turn() == os::Time::max();
           });
  }
  Regions& regions() { return regions_; }

  Network network;
  bool reports = true;  // of unreachable ports

 private:
  ConnectedPort* port_at(const os::SocketAddress& address) {
    for (const auto& port : ports_) {
      if (port->host.address == address) return port.get();
    }
    return nullptr;
  }
  void deliver(Network::Parcel parcel) {
    ConnectedPort* const to = port_at(parcel.path.to);
    ConnectedPort* const from = port_at(parcel.path.from);
    if (to != nullptr) {
      to->host.arrive(std::move(parcel));
    } else if (from != nullptr && reports) {
      os::UdpError error;
      error.peer = parcel.path.to;
      error.what = os::UdpError::What::kPortUnreachable;
      from->host.report(error);
    }
    for (std::size_t i = 0; i < ports_.size(); ++i) {
      if (ports_[i].get() == (to != nullptr ? to : from)) looks_[i] = network.now;
    }
  }

  Regions regions_;
  std::vector<std::unique_ptr<ConnectedPort>> ports_;
  std::vector<os::Time> looks_;
};

}  // namespace weft::rdm::testing
