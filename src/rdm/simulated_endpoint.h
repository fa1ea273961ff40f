// SPDX-License-Identifier: BSD-2-Clause
// Endpoints in the simulator that a test polls and tells what to do, and peers whose packets it
// makes by hand.
#pragma once

#include <chrono>
#include <initializer_list>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "endpoint_log.h"
#include "flow_hand.h"
#include "regions_test_support.h"
#include "roce/address_hash.h"
#include "simulated_host.h"

namespace weft::rdm::testing {

// Receives the packets to an address, and the ICMP errors for those from it.
class Place {
 public:
  virtual ~Place() = default;
  virtual void arrive(Network::Parcel parcel) = 0;
  virtual void report(const os::UdpError& error) = 0;
};

class Endpoint;

// The places, and the network between them, whose time goes on while a test waits.
class World {
 public:
  explicit World(const Weather& weather = {}, double marks = 0, std::uint64_t seed = 1)
      : network(weather, marks, seed) {}

  void enter(const os::SocketAddress& address, Place& place) { places_[address] = &place; }
  void leave(const os::SocketAddress& address) { places_.erase(address); }
  // The number of the next endpoint.
  std::uint8_t next_number() { return numbers_++; }
  // Sends a packet that no endpoint has made, as it is; or with its ICRC.
  void send(const os::SocketAddress& from, const os::SocketAddress& to, const Bytes& bytes) {
    network.send({from, to, roce::route_between(from, to)}, bytes);
  }
  void forge(const os::SocketAddress& from, const os::SocketAddress& to, const Bytes& bytes) {
    send(from, to, FlowHand::sealed(bytes, from, to));
  }
  // Polls these in turn until that holds; false when it does not within `limit`.
  template <class Holds>
  bool until(std::initializer_list<Endpoint*> polled, Holds holds,
             os::Time::duration limit = std::chrono::minutes(5)) {
    const os::Time end = network.now + limit;
    while (!holds()) {
      if (network.now >= end) return false;
      go_on(polled, end);
    }
    return true;
  }
  void pass(os::Time::duration time, std::initializer_list<Endpoint*> polled) {
    until(
        polled, [] { return false; }, time);
  }

  Network network;
  Regions regions;
  bool reports = true;                     // senders hear that an address has no place
  std::map<std::string, unsigned> strays;  // packets to such addresses

 private:
  void go_on(std::initializer_list<Endpoint*> polled, os::Time end);
  void deliver(Network::Parcel parcel);

  std::unordered_map<os::SocketAddress, Place*, roce::AddressHash> places_;
  std::uint8_t numbers_ = 0;
};

// On a host of its own.
class Endpoint final : public Place {
 public:
  static constexpr std::size_t kMtu = 9000;

  explicit Endpoint(World& in, const RdmOptions& options = {})
      : Endpoint(in, in.next_number(), options) {}
  // On the host of that number, where another one may have ended.
  Endpoint(World& in, std::uint8_t number, const RdmOptions& options = {});
  ~Endpoint() override { kill(); }
  Endpoint(const Endpoint&) = delete;
  Endpoint& operator=(const Endpoint&) = delete;

  Result<std::unique_ptr<link::Flow>> open(const os::SocketAddress& peer) {
    return engine->connect(peer);
  }
  // Packets that arrived.
  unsigned poll();
  // The process ends without a word; what arrives later is refused.
  void kill();
  // Ends in good order, as an endpoint over a socket does, while the other one is polled.
  void leave(Endpoint* other = nullptr);
  std::uint64_t sent() const { return host.sent; }

  World& world;
  SimulatedHost host;
  const os::SocketAddress address = host.address;
  const Stats& stats = host.stats;
  InboxLog<RdmEngine> log;
  link::InboxSink* inbox = &log;
  FlowLog ends;
  std::unique_ptr<RdmEngine> engine;  // null: it has ended
  std::vector<std::unique_ptr<link::Flow>> flows;

 private:
  void arrive(Network::Parcel parcel) override { host.arrive(std::move(parcel)); }
  void report(const os::UdpError& error) override { host.report(error); }
};

template <class Holds>
bool until(std::initializer_list<Endpoint*> polled, Holds holds,
           os::Time::duration limit = std::chrono::minutes(5)) {
  return (*polled.begin())->world.until(polled, holds, limit);
}

// A peer that says what the test tells it to.
class Stranger final : public Place, public FlowHand {
 public:
  static constexpr std::uint64_t kKey = 10;  // of the memory that it asks for

  explicit Stranger(World& in);
  // At that address.
  Stranger(World& in, const os::SocketAddress& at);
  ~Stranger() override { go(); }
  Stranger(const Stranger&) = delete;
  Stranger& operator=(const Stranger&) = delete;

  // Its socket is closed, or open again.
  void go() { world_.leave(address); }
  void come() { world_.enter(address, *this); }

  void send_raw(const Endpoint& to, const Bytes& bytes) { world_.send(address, to.address, bytes); }
  void send(const Endpoint& to, const Bytes& bytes) { world_.forge(address, to.address, bytes); }
  void say(const Endpoint& to, const FlowMad& message) { send(to, FlowHand::message(message)); }
  using FlowHand::message;
  // A packet of the flow that the endpoint has agreed upon; and one with a message.
  Bytes of_flow(wire::Operation operation, std::uint32_t number,
                std::span<const std::byte> payload) const;
  Bytes message(std::uint32_t number, MessageHeader header, std::size_t length) const;
  // A message that asks for the sum of `length` bytes of zero operands, to be fetched.
  static Bytes fetch_sum(std::uint32_t rendezvous_id, std::size_t length);

  // The messages that have come: all, or those about flows.
  std::vector<wire::CmMad> hear_all();
  std::vector<FlowMad> hear();
  // The last message of that kind among these.
  template <class Message>
  static std::optional<Message> last(const std::vector<FlowMad>& last_received) {
    std::optional<Message> found;
    for (const FlowMad& said : last_received) {
      if (const auto* message = std::get_if<Message>(&said)) found = *message;
    }
    return found;
  }
  // The first message of that kind that the endpoint sends; none when it sends none.
  template <class Message>
  std::optional<Message> await(Endpoint& from) {
    std::optional<Message> found;
    world_.until({&from}, [&] {
      found = last<Message>(hear());
      return found.has_value();
    });
    return found;
  }
  // Begins a flow to the endpoint, and repeats its REQ as requesters do.
  bool agree(Endpoint& with);
  // Lets the endpoint have a flow to it; null when that fails.
  link::Flow* accept(Endpoint& from);
  // Rejects each REQ.
  void refuse(const Endpoint& from);

 private:
  void arrive(Network::Parcel parcel) override { arrived_.push_back(std::move(parcel.bytes)); }
  void report(const os::UdpError&) override {}

  World& world_;
  std::vector<Bytes> arrived_;
};

// A flow to an endpoint whose peers may access a region.
struct AccessFixture {
  World world;
  Bytes region;
  Endpoint a{world};
  Endpoint b{world};
  link::Flow* flow = connect(a, b);

  explicit AccessFixture(Bytes bytes) : region(std::move(bytes)) {}
  bool both(const std::function<bool()>& holds) { return until({&a, &b}, holds); }
};

}  // namespace weft::rdm::testing
