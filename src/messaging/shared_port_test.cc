// SPDX-License-Identifier: BSD-2-Clause
// Do endpoints that share a port have their peers, and their ends, to themselves?
#include "messaging/shared_port.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <map>
#include <thread>

#include "messaging/shared_ports.h"
#include "test_support.h"

namespace weft::messaging {
namespace {

using testing::Bytes;
using testing::CompletionStatus;
using testing::ConnectionLog;
using ::testing::ElementsAre;
using testing::loopback;
using testing::pattern;

struct Member : testing::ConnectedEnd {
  explicit Member(const EndpointSetup& setup) { open(setup); }
  // Of its connection, as the port numbers them.
  std::size_t source() const {
    const auto& senders = endpoint->at().senders;
    const auto found = std::find_if(senders.begin(), senders.end(), [&](const auto& each) {
      return each != nullptr && each->receiver == &endpoint->receiver();
    });
    return static_cast<std::size_t>(found - senders.begin());
  }
};

struct SharedPortTest : ::testing::Test {
  testing::RuntimeDir dir;
  std::shared_ptr<device::Device> device{std::move(device::Device::get(dir.path())).value()};
  device::CompletionQueue queue{1024, true, device::WaitKind::kNone};
  device::CompletionQueue other_queue{1024, true, device::WaitKind::kNone};
  os::UdpPort port = std::move(os::UdpPort::bind(loopback(0))).value();
  os::UdpPort other_port = std::move(os::UdpPort::bind(loopback(0))).value();
  const DomainId domain = device->new_domain();
  ReceiveQueue receives{true, 16};
  SharedPorts ports;
  testing::RequestPort listener{device, 7190};
  std::vector<std::unique_ptr<Member>> members;
  std::map<void*, CompletionStatus> ended;

  EndpointSetup setup_at(const os::UdpPort& at, device::CompletionQueue& its_queue) {
    EndpointSetup setup;
    setup.device = device;
    setup.bindings.tx = setup.bindings.rx = &its_queue;
    setup.place = {at, {true, true}};
    setup.name = at.address();
    setup.domain = domain;
    return setup;
  }
  std::shared_ptr<SharedPort> port_for(EndpointSetup setup) {
    ConnectionLog unused;
    setup.connection = &unused;
    return ports.port_for(setup, *setup.place.port).value();
  }
  Member& add(EndpointSetup setup) {
    setup.port = port_for(setup);
    members.push_back(std::make_unique<Member>(setup));
    return *members.back();
  }
  Member& add() { return add(setup_at(port, queue)); }
  Member& add_elsewhere() { return add(setup_at(other_port, other_queue)); }

  void take(device::CompletionQueue& from) {
    for (const auto& each : testing::Node::take(from)) ended[each.context] = each.status;
  }
  void progress() {
    for (const auto& member : members) {
      if (member->endpoint != nullptr) member->endpoint->port().progress();
    }
    take(queue);
    take(other_queue);
  }
  template <class Done>
  bool drive(Done done) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (!done() && std::chrono::steady_clock::now() < end) progress();
    return done();
  }
  void join(Member& one, Member& two) {
    one.request(listener.address);
    two.accept(listener.take_request());
    ASSERT_TRUE(drive([&] { return one.log.connections == 1 && two.log.connections == 1; }));
  }
  void expect_message(Member& from, Member& to, std::size_t length) {
    Bytes sent = pattern(length, length);
    Bytes got(length);
    ended.clear();
    ASSERT_EQ(to.receive(got, &got), 0);
    ASSERT_EQ(from.send(sent, &sent), 0);
    ASSERT_TRUE(drive([&] { return ended.contains(&got) && ended.contains(&sent); })) << length;
    EXPECT_EQ(ended[&got], CompletionStatus::kSuccess);
    EXPECT_EQ(got, sent);
  }
};

TEST_F(SharedPortTest, EndpointsOfOneDomainAndQueueShareAPort) {
  EndpointSetup same = setup_at(other_port, queue);
  const auto first = port_for(setup_at(port, queue));
  EXPECT_EQ(port_for(same), first) << "whatever port they were bound to";
  EXPECT_NE(port_for(setup_at(other_port, other_queue)), first);
  same.receives = &receives;
  const os::UdpPort third = std::move(os::UdpPort::bind(loopback(0))).value();
  same.place = {third, same.place.links};
  EXPECT_NE(port_for(same), first);
}

TEST_F(SharedPortTest, WhatPeersAreToldIsTheSameForAllEndpointsOfAPort) {
  const auto first = port_for(setup_at(port, queue));
  const auto differs = [&](const auto& change) {
    const os::UdpPort free = std::move(os::UdpPort::bind(loopback(0))).value();
    EndpointSetup setup = setup_at(free, queue);
    change(setup);
    EXPECT_NE(port_for(setup), first);
  };
  differs([&](EndpointSetup& setup) { setup.domain = device->new_domain(); });
  differs([](EndpointSetup& setup) { setup.served.rma = Access::kNone; });
  differs([](EndpointSetup& setup) { setup.count_remote_writes = true; });
  differs([](EndpointSetup& setup) { setup.number = 7; });
  const auto key = device->authorizations().take(std::as_bytes(std::span("a job"))).value();
  differs([&](EndpointSetup& setup) { setup.authorization = key; });
  differs([](EndpointSetup& setup) { setup.place.traffic_class = 4; });
  differs([](EndpointSetup& setup) { setup.place.links.udp = false; });
}

TEST_F(SharedPortTest, WithoutReceivesThatOthersCouldShareNoneIsShared) {
  EndpointSetup setup = setup_at(port, queue);
  setup.bindings.rx = nullptr;
  EXPECT_EQ(port_for(setup), nullptr);
  setup.receives = &receives;
  EXPECT_NE(port_for(setup), nullptr);
}

TEST_F(SharedPortTest, A255thEndpointGetsAnotherPort) {
  for (int i = 0; i < 254; ++i) add();
  const SharedPort* const first = &members.front()->endpoint->port();
  EXPECT_EQ(&members.back()->endpoint->port(), first);
  EXPECT_NE(&add_elsewhere().endpoint->port(), first);
  EXPECT_NE(
      &add(setup_at(std::move(os::UdpPort::bind(loopback(0))).value(), queue)).endpoint->port(),
      first);
}

TEST_F(SharedPortTest, EndpointsOfTwoPortsAreConnectedOneByOne) {
  for (int i = 0; i < 8; ++i) join(add(), add_elsewhere());
  for (int i = 0; i < 16; i += 2) {
    for (const std::size_t length : {8, 4000, 300000}) {
      expect_message(*members[i], *members[i + 1], length);
      expect_message(*members[i + 1], *members[i], length);
    }
  }
}

TEST_F(SharedPortTest, TwoEndpointsOfOnePortAreConnectedToEachOther) {
  Member& one = add();
  Member& two = add();
  ASSERT_EQ(&one.endpoint->port(), &two.endpoint->port());
  join(one, two);
  for (const std::size_t length : {8, 4000, 300000}) {
    expect_message(one, two, length);
    expect_message(two, one, length);
  }
}

TEST_F(SharedPortTest, ASourceOfNoConnectionIsRefused) {
  Member& one = add();
  for (const std::size_t length : {0, 8, 256, 1024, 1025}) {
    const auto flow = listener.say(one.endpoint->name(), Bytes(length, std::byte{'x'}));
    progress();
    EXPECT_TRUE(listener.is_refused(*flow)) << length;
  }
  Member& peer = add_elsewhere();
  join(one, peer);
  expect_message(peer, one, 8);
}

TEST_F(SharedPortTest, DataOfASourceThatNoEndpointHasAcceptedAreRefused) {
  Member& one = add();
  Bytes got(8);
  ASSERT_EQ(one.receive(got, &got), 0);
  AddressVector addresses{1};
  EndpointSetup setup = setup_at(other_port, other_queue);
  setup.place.links = {true, false};
  setup.addresses = &addresses;
  const auto stranger = std::move(Endpoint::open(setup)).value();
  Bytes bytes(8);
  const LocalRange sge{bytes.data(), bytes.size()};
  SendCall call;
  call.peer = addresses.insert(one.endpoint->name());
  call.sges = {&sge, 1};
  call.length = bytes.size();
  ASSERT_EQ(stranger->send(call), 0);
  for (int i = 0; i < 10; ++i) progress();
  EXPECT_FALSE(ended.contains(&got));
  Bytes large(100000);
  const LocalRange second{large.data(), large.size()};
  call.sges = {&second, 1};
  call.length = large.size();
  call.report.context = &large;
  ASSERT_EQ(stranger->send(call), 0);
  EXPECT_TRUE(drive([&] {
    stranger->port().progress();
    return ended.contains(&large);
  }));
  EXPECT_EQ(ended[&large], CompletionStatus::kRetryExceeded);
}

TEST_F(SharedPortTest, AnAcceptedSourceSpeaksToItsOwnEndpointOnly) {
  Member& one = add();
  Member& two = add();
  Member& peer = add_elsewhere();
  Member& other = add_elsewhere();
  join(one, peer);
  join(two, other);
  Bytes never(8);
  ASSERT_EQ(two.receive(never, &never), 0);
  expect_message(peer, one, 8);
  expect_message(peer, one, 300000);
  EXPECT_FALSE(ended.contains(&never));
}

TEST_F(SharedPortTest, OneThatClosesLeavesTheOthersAlone) {
  for (int i = 0; i < 3; ++i) join(add(), add_elsewhere());
  Member& closes = *members[2];
  Bytes got(300000);
  Bytes never(8);
  ASSERT_EQ(closes.receive(got, &got), 0);
  ASSERT_EQ(closes.receive(never, &never), 0);
  Bytes sent = pattern(300000, 1);
  ASSERT_EQ(members[3]->send(sent, &sent), 0);
  ASSERT_TRUE(closes.endpoint->close().ok());
  got.assign(got.size(), std::byte{5});
  closes.endpoint.reset();
  EXPECT_TRUE(drive([&] { return members[3]->log.partings != 0 && ended.contains(&sent); }));
  EXPECT_EQ(got, Bytes(got.size(), std::byte{5}));
  EXPECT_FALSE(ended.contains(&got)) << "what ends with an endpoint is not reported";
  EXPECT_FALSE(ended.contains(&never));
  expect_message(*members[0], *members[1], 300000);
  expect_message(*members[5], *members[4], 300000);
  for (const int i : {0, 1, 4, 5}) EXPECT_EQ(members[i]->log.partings, 0);
}

TEST_F(SharedPortTest, APeerThatEndedTheConnectionOfAnEndpointFindsNoneWhenThatHasClosed) {
  Member& closes = add();
  Member& stays = add();
  Member& peer = add_elsewhere();
  Member& other = add_elsewhere();
  join(closes, peer);
  join(stays, other);
  peer.disconnect(ECANCELED);
  ASSERT_TRUE(drive([&] { return closes.log.partings != 0; }));
  closes.endpoint.reset();
  Bytes bytes(8);
  EXPECT_EQ(peer.send(bytes), ESHUTDOWN);
  peer.endpoint.reset();
  for (int i = 0; i < 100; ++i) progress();
  expect_message(stays, other, 300000);
  expect_message(other, stays, 8);
}

// Another source has the number by then that the peer of the endpoint had.
TEST_F(SharedPortTest, AnEndpointThatLostItsPeerLongAgoClosesWithoutHarmToOthers) {
  Member& closes = add();
  Member& stays = add();
  Member& gone = add_elsewhere();
  join(closes, gone);
  const std::size_t source = closes.source();
  closes.disconnect(ECONNRESET);
  gone.endpoint.reset();
  for (int i = 0; i < 10; ++i) progress();
  Member& other = add_elsewhere();
  join(stays, other);
  ASSERT_EQ(stays.source(), source);
  closes.endpoint.reset();
  expect_message(other, stays, 8);
  expect_message(stays, other, 300000);
}

TEST_F(SharedPortTest, OneThatEndsItsConnectionLeavesTheOthersAlone) {
  for (int i = 0; i < 2; ++i) join(add(), add_elsewhere());
  members[0]->disconnect(ECANCELED);
  EXPECT_TRUE(drive([&] { return members[1]->log.partings != 0; }));
  expect_message(*members[2], *members[3], 300000);
  expect_message(*members[3], *members[2], 8);
}

TEST_F(SharedPortTest, ARequestOfAnEndpointThatClosedIsAcceptedInVain) {
  add();
  Member& gone = add();
  Member& peer = add_elsewhere();
  gone.request(listener.address);
  const link::ConnectionRequest request = listener.take_request();
  gone.endpoint.reset();
  peer.accept(request);
  EXPECT_TRUE(drive([&] { return !peer.log.failures.empty(); }));
  EXPECT_THAT(peer.log.failures, ElementsAre(ECONNABORTED));
  EXPECT_EQ(gone.log.connections, 0);
}

// The endpoint that accepts it is closed before the requester has confirmed.
TEST_F(SharedPortTest, AnAcceptanceOfAnEndpointThatClosedEnds) {
  add();
  Member& gone = add();
  Member& peer = add_elsewhere();
  peer.request(listener.address);
  gone.accept(listener.take_request());
  gone.endpoint.reset();
  EXPECT_TRUE(drive([&] { return !peer.log.failures.empty() || peer.log.partings != 0; }));
  EXPECT_EQ(gone.log.connections, 0);
}

TEST_F(SharedPortTest, SharedReceivesTakeTheMessagesOfAllEndpoints) {
  EndpointSetup setup = setup_at(port, queue);
  setup.receives = &receives;
  Member& one = add(setup);
  Member& two = add(setup);
  ASSERT_EQ(&one.endpoint->port(), &two.endpoint->port());
  Member& first = add_elsewhere();
  Member& second = add_elsewhere();
  join(one, first);
  join(two, second);
  for (Member* const from : {&second, &first}) {
    for (const std::size_t length : {8, 300000}) {
      Bytes sent = pattern(length, length);
      Bytes got(length);
      ended.clear();
      ASSERT_EQ(testing::ConnectedEnd::receive_in(receives, got, &got), 0);
      ASSERT_EQ(from->send(sent), 0);
      ASSERT_TRUE(drive([&] { return ended.contains(&got); }));
      EXPECT_EQ(got, sent);
    }
  }
}

// As the progress thread does.
TEST_F(SharedPortTest, EndpointsOverTheNetworkCloseWhileAnotherThreadDrivesTheirPort) {
  const os::UdpPort heard = std::move(os::UdpPort::bind(loopback(0))).value();
  testing::RequestPort far(device, {heard, {false, true}});
  EndpointSetup near_setup = setup_at(port, queue);
  EndpointSetup far_setup = setup_at(other_port, other_queue);
  near_setup.place.links = far_setup.place.links = {false, true};
  for (int i = 0; i < 8; ++i) {
    Member& one = add(near_setup);
    Member& two = add(far_setup);
    one.request(far.address);
    ASSERT_TRUE(drive([&] {
      far.port->inbox().poll(far);
      return !far.requests.empty();
    }));
    two.accept(far.take_request());
    ASSERT_TRUE(drive([&] { return one.log.connections == 1 && two.log.connections == 1; }));
  }
  SharedPort& driven = members[0]->endpoint->port();
  std::atomic<bool> stops{false};
  std::thread driver([&] {
    while (!stops) driven.progress();
  });
  for (std::size_t i = 2; i < members.size(); i += 2) {
    Bytes bytes(100);
    EXPECT_EQ(members[i]->send(bytes), 0);
    members[i]->endpoint.reset();
  }
  stops = true;
  driver.join();
  expect_message(*members[0], *members[1], 8);
}

// Over the network messages that the endpoint waits for are taken beyond the usual limit.
TEST_F(SharedPortTest, TheLimitsOfAnEndpointHoldForUrgentMessagesOfItsPeer) {
  static const Options few = [] {  // outlives the endpoints
    Options options;
    options.unexpected_limit = 0;
    return options;
  }();
  EndpointSetup setup = setup_at(port, queue);
  setup.options = &few;
  Member& one = add(setup);
  Member& peer = add_elsewhere();
  join(one, peer);
  const link::InboxSink& sink = *one.endpoint->at().sink;
  const auto source = static_cast<std::uint32_t>(one.source());
  EXPECT_TRUE(sink.takes_more_urgently(source));
  Bytes bytes(100);
  ASSERT_EQ(peer.send(bytes), 0);
  EXPECT_TRUE(drive([&] { return !sink.takes_more_urgently(source); }));
  EXPECT_EQ(sink.room_for(source), 0U);
}

TEST_F(SharedPortTest, ASleeperIsWokenByTheMessageOfAnyEndpoint) {
  for (int i = 0; i < 2; ++i) join(add(), add_elsewhere());
  SharedPort& sleeper = members[0]->endpoint->port();
  for (const int i : {1, 3}) {
    while (!sleeper.fall_asleep()) {
      sleeper.wake_up();
      sleeper.progress();
    }
    Bytes bytes(8);
    ASSERT_EQ(members[i]->send(bytes), 0);
    EXPECT_TRUE(os::wait_readable(sleeper.wake_fd(), std::chrono::seconds(20)));
    sleeper.wake_up();
    sleeper.progress();
  }
}

}  // namespace
}  // namespace weft::messaging
