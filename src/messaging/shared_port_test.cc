// SPDX-License-Identifier: BSD-2-Clause
// Do endpoints that share a port have their peers, and their ends, to themselves?
#include "messaging/shared_port.h"

#include <cstring>
#include <map>

#include "messaging/shared_ports.h"
#include "test_support.h"

namespace weft::messaging {
namespace {

using testing::Bytes;
using testing::CompletionStatus;
using testing::loopback;
using testing::pattern;

std::string message_to(std::uint64_t number, const std::string& text = {}) {
  std::string message(sizeof number, '\0');
  std::memcpy(message.data(), &number, sizeof number);
  return message + text;
}

std::uint64_t number_in(std::span<const std::byte> message) {
  std::uint64_t number = 0;
  if (message.size() >= sizeof number) std::memcpy(&number, message.data(), sizeof number);
  return number;
}

// Accepts the source of the first control message.
struct Acceptor final : ConnectionSink {
  Endpoint* endpoint = nullptr;
  std::uint32_t source = 0;
  std::vector<std::string> said;
  int losses = 0;

  void heard(std::uint32_t from, std::span<const std::byte> message) override {
    source = from;
    said.emplace_back(reinterpret_cast<const char*>(message.data()), message.size());
    if (said.size() == 1) endpoint->peer().accept_source(from);
  }
  void lost(bool) override { ++losses; }
  void tick(os::Time) override {}
  void reached() override {}
  void parting_is_due() override {}
};

struct Member {
  Acceptor manager;
  AddressVector no_addresses{0};
  std::uint64_t number;
  std::unique_ptr<Endpoint> endpoint;

  Member(EndpointSetup setup, std::uint64_t its_number) : number(its_number) {
    setup.addresses = &no_addresses;
    setup.connection = &manager;
    setup.number_in = number_in;
    endpoint = std::move(Endpoint::open(std::move(setup))).value();
    manager.endpoint = endpoint.get();
    endpoint->exclusively([&] { endpoint->peer().expect(number); });
  }
  int reach(const os::SocketAddress& peer) {
    return endpoint->exclusively([&] { return endpoint->peer().open_path(peer); });
  }
  int tell(const std::string& text) {
    const auto bytes = std::as_bytes(std::span(text));
    return endpoint->exclusively([&] { return endpoint->peer().send_control(bytes); });
  }
  int send(Bytes& bytes, void* context = nullptr) {
    const LocalRange piece{bytes.data(), bytes.size()};
    SendCall call;
    call.pieces = {&piece, 1};
    call.length = bytes.size();
    call.report.context = context;
    return endpoint->send(call);
  }
  int receive(Bytes& bytes, void* context = nullptr) {
    return receive_in(endpoint->receives(), bytes, context);
  }
  static int receive_in(ReceiveQueue& queue, Bytes& bytes, void* context) {
    const LocalRange piece{bytes.data(), bytes.size()};
    ReceiveCall call;
    call.pieces = {&piece, 1};
    call.report.context = context;
    return queue.receive(call);
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
  std::vector<std::unique_ptr<Member>> members;
  std::map<void*, CompletionStatus> ended;

  EndpointSetup setup_at(const os::UdpPort& at, device::CompletionQueue& its_queue) {
    EndpointSetup setup;
    setup.device = device;
    setup.bindings.tx = setup.bindings.rx = &its_queue;
    setup.place = {at, {true, true}};
    setup.name = at.address();
    setup.domain = domain;
    setup.number_in = number_in;
    return setup;
  }
  std::shared_ptr<SharedPort> port_for(EndpointSetup setup) {
    Acceptor unused;
    setup.connection = &unused;
    return ports.port_for(setup, *setup.place.port).value();
  }
  Member& add(EndpointSetup setup) {
    setup.port = port_for(setup);
    members.push_back(std::make_unique<Member>(setup, members.size() + 1));
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
    ASSERT_EQ(one.reach(two.endpoint->name()), 0);
    ASSERT_EQ(two.reach(one.endpoint->name()), 0);
    ASSERT_EQ(one.tell(message_to(two.number)), 0);
    ASSERT_EQ(two.tell(message_to(one.number)), 0);
    ASSERT_TRUE(drive([&] { return !one.manager.said.empty() && !two.manager.said.empty(); }));
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
  differs([](EndpointSetup& setup) { setup.place.traffic_class = 4; });
  differs([](EndpointSetup& setup) { setup.place.links.udp = false; });
}

TEST_F(SharedPortTest, WithoutALinkWithinTheHostNoneIsShared) {
  EndpointSetup setup = setup_at(port, queue);
  setup.place.links = {false, true};
  EXPECT_EQ(port_for(setup), nullptr);
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

TEST_F(SharedPortTest, AControlMessageGoesToTheEndpointThatExpectsItsNumber) {
  Member& one = add();
  Member& two = add();
  Member& peer = add_elsewhere();
  ASSERT_EQ(peer.reach(one.endpoint->name()), 0);
  ASSERT_EQ(peer.tell(message_to(two.number, "hello")), 0);
  ASSERT_TRUE(drive([&] { return !two.manager.said.empty(); }));
  EXPECT_EQ(two.manager.said[0], message_to(two.number, "hello"));
  EXPECT_TRUE(one.manager.said.empty());
}

TEST_F(SharedPortTest, ASourceThatNamesNoEndpointIsRefused) {
  Member& one = add();
  for (const std::string& message :
       {message_to(77), std::string("short"), std::string(kMaxControlBytes + 1, 'x')}) {
    Member& peer = add_elsewhere();
    ASSERT_EQ(peer.reach(one.endpoint->name()), 0);
    ASSERT_EQ(peer.tell(message), 0);
    EXPECT_TRUE(drive([&] { return peer.manager.losses != 0; }));
  }
  EXPECT_TRUE(one.manager.said.empty());
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
  const LocalRange piece{bytes.data(), bytes.size()};
  SendCall call;
  call.peer = addresses.insert(one.endpoint->name());
  call.pieces = {&piece, 1};
  call.length = bytes.size();
  ASSERT_EQ(stranger->send(call), 0);
  for (int i = 0; i < 10; ++i) progress();
  EXPECT_FALSE(ended.contains(&got));
  Bytes large(100000);
  const LocalRange second{large.data(), large.size()};
  call.pieces = {&second, 1};
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
  join(one, peer);
  ASSERT_EQ(peer.tell(message_to(two.number, "for two")), 0);
  ASSERT_TRUE(drive([&] { return one.manager.said.size() == 2; }));
  EXPECT_TRUE(two.manager.said.empty());
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
  EXPECT_TRUE(drive([&] { return members[3]->manager.losses != 0 && ended.contains(&sent); }));
  EXPECT_EQ(got, Bytes(got.size(), std::byte{5}));
  EXPECT_FALSE(ended.contains(&got)) << "what ends with an endpoint is not reported";
  EXPECT_FALSE(ended.contains(&never));
  expect_message(*members[0], *members[1], 300000);
  expect_message(*members[5], *members[4], 300000);
  for (const int i : {0, 1, 4, 5}) EXPECT_EQ(members[i]->manager.losses, 0);
}

// The peer takes nothing in any more, but its own flow is still open when the endpoint closes.
TEST_F(SharedPortTest, APeerThatRefusedAnEndpointFindsNoneWhenThatHasClosed) {
  Member& closes = add();
  Member& stays = add();
  Member& peer = add_elsewhere();
  Member& other = add_elsewhere();
  join(closes, peer);
  join(stays, other);
  Endpoint& refuses = *peer.endpoint;
  refuses.exclusively([&] { refuses.peer().reject_source(peer.manager.source); });
  ASSERT_TRUE(drive([&] { return closes.manager.losses != 0; }));
  closes.endpoint.reset();
  EXPECT_NE(peer.tell(message_to(closes.number)), 0);
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
  closes.endpoint->exclusively([&] { closes.endpoint->peer().disconnect(ECONNRESET); });
  gone.endpoint.reset();
  for (int i = 0; i < 10; ++i) progress();
  Member& other = add_elsewhere();
  join(stays, other);
  ASSERT_EQ(stays.manager.source, closes.manager.source);
  closes.endpoint.reset();
  expect_message(other, stays, 8);
  expect_message(stays, other, 300000);
}

TEST_F(SharedPortTest, OneThatEndsItsConnectionLeavesTheOthersAlone) {
  for (int i = 0; i < 2; ++i) join(add(), add_elsewhere());
  Endpoint& ends = *members[0]->endpoint;
  ends.exclusively([&] { ends.peer().disconnect(ECANCELED); });
  EXPECT_TRUE(drive([&] { return members[1]->manager.losses != 0; }));
  expect_message(*members[2], *members[3], 300000);
  expect_message(*members[3], *members[2], 8);
}

TEST_F(SharedPortTest, ANumberOfAnEndpointThatClosedNamesNoneAnyMore) {
  Member& one = add();
  Member& gone = add();
  const os::SocketAddress name = one.endpoint->name();
  gone.endpoint.reset();
  Member& peer = add_elsewhere();
  ASSERT_EQ(peer.reach(name), 0);
  ASSERT_EQ(peer.tell(message_to(gone.number)), 0);
  EXPECT_TRUE(drive([&] { return peer.manager.losses != 0; }));
  EXPECT_TRUE(gone.manager.said.empty());
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
      ASSERT_EQ(Member::receive_in(receives, got, &got), 0);
      ASSERT_EQ(from->send(sent), 0);
      ASSERT_TRUE(drive([&] { return ended.contains(&got); }));
      EXPECT_EQ(got, sent);
    }
  }
}

// The peer is on the network only.
TEST_F(SharedPortTest, APeerThatIsElsewhereIsReachedFromAPortOfItsOwn) {
  Member& stays = add();
  Member& moves = add();
  const os::SocketAddress shared = stays.endpoint->name();
  EndpointSetup far = setup_at(other_port, other_queue);
  far.place.links = {false, true};
  members.push_back(std::make_unique<Member>(far, 77));
  Member& peer = *members.back();
  join(moves, peer);
  EXPECT_NE(moves.endpoint->name(), shared);
  EXPECT_EQ(stays.endpoint->name(), shared);
  expect_message(moves, peer, 300000);
  expect_message(peer, moves, 8);
  moves.endpoint.reset();
  EXPECT_TRUE(drive([&] { return peer.manager.losses != 0; }));
  Member& last = add();
  join(stays, last);
  expect_message(stays, last, 8);
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
