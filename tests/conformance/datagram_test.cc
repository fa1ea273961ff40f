// SPDX-License-Identifier: BSD-2-Clause
// Do datagrams arrive when there is a receive for them, and is their loss no error anywhere?
// (fi_endpoint(3), FI_EP_DGRAM; fi_domain(3), resource management)
#include <gtest/gtest.h>
#include <netinet/in.h>

#include <cstring>
#include <vector>

#include "support/delivery.h"
#include "support/placements.h"

namespace weft::conformance {
namespace {

constexpr Kind kSends[] = {Kind::kSend,   Kind::kSendv,    Kind::kSendmsg,
                           Kind::kInject, Kind::kSenddata, Kind::kInjectdata};

std::size_t limit_of(World& world) { return world.endpoint().info()->ep_attr->max_msg_size; }

Token post_receive(Party& party, std::size_t length, fi_addr_t source = FI_ADDR_UNSPEC) {
  return party.post({.kind = Kind::kRecv, .length = length, .peer = source});
}

Operation datagram(fi_addr_t to, std::size_t length, std::uint64_t seed) {
  return {.kind = Kind::kSend, .length = length, .seed = seed, .peer = to};
}

// One datagram from `from`, whose send must succeed by itself.
void send_one(Party& from, fi_addr_t to, std::size_t length, std::uint64_t seed) {
  from.wait_success(from.post(datagram(to, length, seed)));
}

// Numbered datagrams fill the receives, whichever comes first.
void expect_filled(Party& receiver, const std::vector<Token>& receives,
                   const std::vector<Source>& sources, std::size_t length) {
  std::size_t filled = 0;
  const auto all = hear_numbered(sources, length, receives.size(), [&](auto limit) {
    const auto c = receiver.look_for(receives[filled], limit);
    if (c) ++filled;
    return c;
  });
  for (std::size_t i = 0; i < all.size(); ++i) {
    receiver.expect_data(receives[i], number_seed(all[i].data), length);
  }
}

class Datagram : public PlacementTest {
 protected:
  Datagram() : world_(GetParam(), datagrams()) {}
  void send(std::size_t length, std::uint64_t seed) {
    send_one(world_.initiator(), world_.to_target(), length, seed);
  }
  Completion deliver(Token received, std::size_t length, std::uint64_t seed,
                     Kind kind = Kind::kSend) {
    const Operation operation{
        .kind = kind, .length = length, .seed = seed, .peer = world_.to_target(), .data = 99};
    return conformance::deliver(world_.initiator(), operation, world_.target(), received);
  }
  World world_;
};

TEST_P(Datagram, EveryFormOfSendingArrivesInEverySize) {
  ASSERT_TRUE(world_.ok());
  const std::size_t limit = limit_of(world_);
  const std::size_t inject = world_.endpoint().info()->tx_attr->inject_size;
  for (const Kind kind : kSends) {
    for (const std::size_t length :
         {std::size_t{0}, std::size_t{1}, std::size_t{100}, inject, limit}) {
      SCOPED_TRACE(testing::Message() << traits(kind).name << " of " << length);
      if (traits(kind).inject && length > inject) continue;
      const Token received = post_receive(world_.target(), limit);
      const Completion c = deliver(received, length, length + 1, kind);
      EXPECT_EQ(c.err, 0);
      EXPECT_EQ(c.length, length);
      EXPECT_EQ(c.source, world_.to_initiator());
      EXPECT_EQ(c.flags & (FI_RECV | FI_MSG | FI_MULTICAST), FI_RECV | FI_MSG);
      EXPECT_EQ((c.flags & FI_REMOTE_CQ_DATA) != 0, traits(kind).data);
      if (traits(kind).data) {
        EXPECT_EQ(c.data, 99u);
      }
      world_.target().expect_data(received, length + 1, length);
      if (HasFailure()) return;
    }
  }
}

TEST_P(Datagram, MoreThanTheLimitIsRefused) {
  ASSERT_TRUE(world_.ok());
  for (const Kind kind : kSends) {
    const Posted posted = world_.initiator().try_post(
        {.kind = kind, .length = limit_of(world_) + 1, .peer = world_.to_target()});
    EXPECT_EQ(posted.rc, -FI_EMSGSIZE) << traits(kind).name;
  }
  EXPECT_EQ(world_.initiator().leftovers(), 0u);
}

TEST_P(Datagram, AFewThatComeBeforeTheirReceivesAreKeptInOrder) {
  ASSERT_TRUE(world_.ok());
  for (std::uint64_t i = 0; i < 3; ++i) send(100, i);
  EXPECT_EQ(world_.target().leftovers(), 0u);
  for (std::uint64_t i = 0; i < 3; ++i) {
    const Token received = post_receive(world_.target(), 100);
    EXPECT_EQ(world_.target().wait_success(received).length, 100u);
    world_.target().expect_data(received, i, 100);
  }
  const Token received = post_receive(world_.target(), 100);
  EXPECT_EQ(world_.target().leftovers(), 0u);
  EXPECT_EQ(deliver(received, 100, 7).err, 0);
  world_.target().expect_data(received, 7, 100);
}

TEST_P(Datagram, OneThatIsTooLongForItsBufferIsCutOff) {
  ASSERT_TRUE(world_.ok());
  for (const std::size_t room : {0u, 1u, 150u, 199u}) {
    const Token received = post_receive(world_.target(), room);
    const Completion c = deliver(received, 200, 3);
    EXPECT_EQ(c.err, FI_ETRUNC);
    EXPECT_EQ(c.length, room);
    EXPECT_EQ(c.overflow, 200 - room);
    world_.target().expect_data(received, 3, room);
  }
}

TEST_P(Datagram, ACancelledReceiveTakesNothing) {
  ASSERT_TRUE(world_.ok());
  const Token received = post_receive(world_.target(), 100);
  EXPECT_EQ(world_.target().cancel(received), 0);
  world_.target().wait_error(received, FI_ECANCELED);
  send(100, 1);
  EXPECT_EQ(world_.target().leftovers(), 0u);
}

TEST_P(Datagram, DatagramsForManyPostedReceivesArrive) {
  ASSERT_TRUE(world_.ok());
  std::vector<Token> tokens;
  for (int i = 0; i < 200; ++i) tokens.push_back(post_receive(world_.target(), 64));
  const Source source{&world_.initiator(), world_.to_target(), world_.to_initiator()};
  expect_filled(world_.target(), tokens, {source}, 64);
}

TEST_P(Datagram, SendingToAClosedPortSucceedsAndALatecomerIsReached) {
  ASSERT_TRUE(world_.ok());
  Pump pump;
  auto party = std::make_unique<LocalParty>(world_.endpoint().domain(), datagrams(), &pump);
  ASSERT_TRUE(party->ok());
  const Address address = party->name();
  const fi_addr_t peer = world_.initiator().insert(address);
  party.reset();
  for (int i = 0; i < 300; ++i) {
    send_one(world_.initiator(), peer, 100, 1);
    if (HasFailure()) return;
  }
  sockaddr_in own{};
  std::memcpy(&own, address.bytes.data(), sizeof own);
  Options options = datagrams();
  options.port = ntohs(own.sin_port);
  party = std::make_unique<LocalParty>(std::make_shared<Domain>(options), options, &pump);
  ASSERT_TRUE(party->ok());
  const Token received = post_receive(*party, 100);
  const bool reached = world_.pump().until([&] {
    send_one(world_.initiator(), peer, 100, 1);
    pump.once();
    return party->endpoint().take(party->context_of(received)).has_value();
  });
  EXPECT_TRUE(reached);
}

INSTANTIATE_TEST_SUITE_P(Datagrams, Datagram,
                         testing::Values(Placement::kTwoProcesses, Placement::kOneProcess,
                                         Placement::kTwoDomains, Placement::kSelf),
                         placement_name);

// Rules for which the sides live here, so that the receiver does nothing unless told to.
class DatagramHere : public testing::Test {
 protected:
  DatagramHere() : world_(Placement::kOneProcess, datagrams()) {}
  LocalParty& target() { return static_cast<LocalParty&>(world_.target()); }
  // Sends and takes the completion without letting the receiver look.
  void send_alone(std::size_t length) {
    std::vector<std::uint8_t> bytes(length, 1);
    const ssize_t rc =
        fi_send(world_.ep(), bytes.data(), length, nullptr, world_.to_target(), this);
    ASSERT_EQ(rc, 0) << "a send does not wait";
    world_.endpoint().poll();
    const auto c = world_.endpoint().take(this);
    ASSERT_TRUE(c.has_value()) << "it is over when the call returns";
    EXPECT_EQ(c->err, 0);
  }
  World world_;
};

TEST_F(DatagramHere, AReceiverThatNeverPollsDelaysNoSender) {
  ASSERT_TRUE(world_.ok());
  for (int i = 0; i < 20'000; ++i) {
    send_alone(limit_of(world_));
    if (HasFatalFailure()) return;
  }
  target().leftovers();
  constexpr std::chrono::milliseconds kMoment{50};
  Token received = post_receive(target(), limit_of(world_));
  std::size_t kept = 0;
  for (; target().look_for(received, kMoment).has_value(); ++kept) {
    received = post_receive(target(), limit_of(world_));
  }
  EXPECT_GT(kept, 0u);
  EXPECT_LT(kept, 20'000u);
  const Operation last = datagram(world_.to_target(), 100, 5);
  EXPECT_EQ(deliver(world_.initiator(), last, target(), received).err, 0);
  target().expect_data(received, 5, 100);
}

TEST_F(DatagramHere, AMultiReceiveIsFilledWithDatagrams) {
  ASSERT_TRUE(world_.ok());
  GuardedBuffer buffer(1000);
  const iovec piece{buffer.data(), buffer.length()};
  const fi_msg message = message_of({&piece, 1}, FI_ADDR_UNSPEC, &buffer);
  ASSERT_EQ(fi_recvmsg(target().endpoint().ep(), &message, FI_MULTI_RECV), 0);
  const Source source{&world_.initiator(), world_.to_target(), world_.to_initiator()};
  const auto all = hear_numbered({source}, 100, 10, [&](std::chrono::milliseconds limit) {
    std::optional<Completion> c;
    const auto heard = [&] { return (c = target().endpoint().take(&buffer)).has_value(); };
    world_.pump().until(heard, limit);
    return c;
  });
  ASSERT_EQ(all.size(), 10u);
  EXPECT_NE(all.back().flags & FI_MULTI_RECV, 0u);
  for (std::size_t i = 0; i < 10; ++i) {
    EXPECT_EQ(buffer.check_pattern(number_seed(all[i].data), i * 100, 100), "");
  }
}

TEST_F(DatagramHere, CallsOfReliableEndpointsAreRefused) {
  ASSERT_TRUE(world_.ok());
  fi_msg message = message_of({}, world_.to_target(), nullptr);
  for (const std::uint64_t flag : {FI_DELIVERY_COMPLETE, FI_MATCH_COMPLETE, FI_FENCE}) {
    EXPECT_EQ(fi_sendmsg(world_.ep(), &message, flag), -FI_EBADFLAGS) << flag;
  }
  EXPECT_EQ(fi_tsend(world_.ep(), nullptr, 0, nullptr, world_.to_target(), 1, nullptr), -FI_ENOSYS);
  std::uint64_t byte = 0;
  EXPECT_EQ(fi_write(world_.ep(), &byte, 1, nullptr, world_.to_target(), 0, 0, nullptr),
            -FI_ENOSYS);
  EXPECT_EQ(fi_sendmsg(world_.ep(), &message, FI_MULTICAST), -FI_EINVAL) << "that is no group";
  message.addr = 12345;
  EXPECT_EQ(fi_sendmsg(world_.ep(), &message, 0), -FI_EINVAL) << "no peer has that number";
}

TEST_F(DatagramHere, ADirectedReceiveTakesItsSourceOnly) {
  ASSERT_TRUE(world_.ok());
  LocalParty other(world_.endpoint().domain(), datagrams(), &world_.pump());
  ASSERT_TRUE(other.ok());
  const fi_addr_t from_other = target().insert(other.name());
  const fi_addr_t other_to_target = other.insert(target().name());
  const Token directed = post_receive(target(), 100, from_other);
  const Token any = post_receive(target(), 100);
  const Operation first = datagram(world_.to_target(), 100, 1);
  EXPECT_EQ(deliver(world_.initiator(), first, target(), any).source, world_.to_initiator());
  target().expect_data(any, 1, 100);
  const Operation second = datagram(other_to_target, 100, 2);
  EXPECT_EQ(deliver(other, second, target(), directed).source, from_other);
  target().expect_data(directed, 2, 100);
}

TEST_F(DatagramHere, AReliableEndpointIsAnotherWorld) {
  ASSERT_TRUE(world_.ok());
  const Options reliable;
  Pump pump;
  LocalParty stranger(std::make_shared<Domain>(reliable), reliable, &pump);
  ASSERT_TRUE(stranger.ok());
  const fi_addr_t to_stranger = world_.initiator().insert(stranger.name());
  const fi_addr_t from_stranger = stranger.insert(target().name());
  const Token here = post_receive(target(), 100);
  const Token there = post_receive(stranger, 100);
  send_one(world_.initiator(), to_stranger, 100, 1);
  const Token sent =
      stranger.post({.kind = Kind::kSend, .length = 100, .seed = 1, .peer = from_stranger});
  stranger.wait_error(sent, FI_EHOSTUNREACH);
  EXPECT_EQ(target().leftovers(), 0u);
  EXPECT_EQ(stranger.leftovers(), 0u);
  EXPECT_EQ(target().cancel(here), 0);
  EXPECT_EQ(stranger.cancel(there), 0);
}

TEST(DatagramCrowd, SixteenSendersReachOneReceiver) {
  constexpr std::size_t kSenders = 16;
  constexpr std::size_t kEach = 20;
  Pump pump;
  const Options options = datagrams();
  LocalParty receiver(std::make_shared<Domain>(options), options, &pump);
  ASSERT_TRUE(receiver.ok());
  std::vector<Token> tokens;
  for (std::size_t i = 0; i < kSenders * kEach; ++i) tokens.push_back(post_receive(receiver, 200));
  std::vector<std::unique_ptr<RemoteParty>> senders;
  std::vector<Source> sources;
  for (std::size_t i = 0; i < kSenders; ++i) {
    senders.push_back(std::make_unique<RemoteParty>(options, &pump));
    RemoteParty& sender = *senders.back();
    ASSERT_TRUE(sender.ok());
    const fi_addr_t name = receiver.insert(sender.name());
    sources.push_back({&sender, sender.insert(receiver.name()), name});
  }
  expect_filled(receiver, tokens, sources, 200);
}

class DatagramWait : public testing::TestWithParam<fi_wait_obj> {};

TEST_P(DatagramWait, ASleeperIsWokenByADatagram) {
  Options options = datagrams();
  options.wait = GetParam();
  World world(Placement::kTwoProcesses, options);
  ASSERT_TRUE(world.ok());
  for (int round = 0; round < 3; ++round) {
    const Token token = post_receive(world.initiator(), 8);
    Request request;
    request.what = Request::What::kPost;
    request.operation = {.kind = Kind::kSend,
                         .length = 8,
                         .seed = 5,
                         .peer = world.to_initiator(),
                         .delay_us = 50'000};
    fi_cq_tagged_entry entry{};
    const auto sleep = [&](std::chrono::milliseconds limit) {
      const ssize_t got =
          fi_cq_sread(world.endpoint().cq(), &entry, 1, nullptr, static_cast<int>(limit.count()));
      world.target().wait_success(world.remote().finish().value);
      return got == 1;
    };
    EXPECT_TRUE(until_heard([&] { world.remote().start(request); }, sleep));
    EXPECT_EQ(entry.op_context, world.initiator().context_of(token));
  }
}

INSTANTIATE_TEST_SUITE_P(Datagrams, DatagramWait, testing::Values(FI_WAIT_UNSPEC, FI_WAIT_FD));

TEST(DatagramInfo, SaysWhatSuchAnEndpointCanDo) {
  int rc = 0;
  const Options options = datagrams();
  const Info info = get_info(options, make_hints(options).get(), &rc);
  ASSERT_EQ(rc, 0);
  for (const fi_info* one = info.get(); one != nullptr; one = one->next) {
    EXPECT_EQ(one->ep_attr->type, FI_EP_DGRAM);
    EXPECT_GE(one->ep_attr->max_msg_size, 256u);
    EXPECT_LE(one->ep_attr->max_msg_size, 4096u);
    EXPECT_LE(one->tx_attr->inject_size, one->ep_attr->max_msg_size);
    EXPECT_EQ(one->tx_attr->msg_order, 0u);
    EXPECT_EQ(one->rx_attr->msg_order, 0u);
    EXPECT_EQ(one->caps & (FI_TAGGED | FI_RMA | FI_ATOMIC | FI_FENCE), 0u);
    EXPECT_EQ(one->caps & options.caps, options.caps);
  }
}

TEST(DatagramInfo, CapabilitiesThatSuchAnEndpointLacksDoNotMatch) {
  int rc = 0;
  const Options options = datagrams();
  const auto ask = [&](auto change) {
    const Info hints = make_hints(options);
    change(hints.get());
    get_info(options, hints.get(), &rc);
    return rc;
  };
  EXPECT_EQ(ask([](fi_info*) {}), 0);
  EXPECT_EQ(ask([](fi_info* hints) { hints->caps |= FI_TAGGED; }), -FI_ENODATA);
  EXPECT_EQ(ask([](fi_info* hints) { hints->caps |= FI_RMA; }), -FI_ENODATA);
  EXPECT_EQ(ask([](fi_info* hints) { hints->caps |= FI_FENCE; }), -FI_ENODATA);
  EXPECT_EQ(ask([](fi_info* hints) { hints->tx_attr->op_flags = FI_DELIVERY_COMPLETE; }),
            -FI_ENODATA);
  EXPECT_EQ(ask([](fi_info* hints) { hints->tx_attr->msg_order = FI_ORDER_SAS; }), -FI_ENODATA);
  EXPECT_EQ(ask([](fi_info* hints) { hints->ep_attr->max_msg_size = 4097; }), -FI_ENODATA);
  EXPECT_EQ(ask([](fi_info* hints) { hints->tx_attr->op_flags = FI_TRANSMIT_COMPLETE; }), 0);
  EXPECT_EQ(ask([](fi_info* hints) { hints->tx_attr->op_flags = FI_MULTICAST; }), 0);
}

}  // namespace
}  // namespace weft::conformance
