// SPDX-License-Identifier: BSD-2-Clause
// Does an endpoint go on whatever its peers send to it?
#include <gtest/gtest.h>

#include <cstring>
#include <random>

#include "simulated_endpoint.h"
#include "wire/endian.h"

namespace weft::rdm::testing {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using wire::Operation;

struct HostilePeerTest : ::testing::Test {
  static constexpr std::size_t kMemory = std::size_t{8} << 20;
  static constexpr std::uint64_t kKey = Stranger::kKey;
  World world;
  Bytes region = Bytes(4096);
  Options patient = [] {
    Options options;
    options.connect_timeout = std::chrono::hours(1);
    return options;
  }();
  Endpoint a{world};
  Endpoint b{world, [this] {
               RdmOptions options;
               options.device = &patient;
               options.message_memory.total = kMemory;
               return options;
             }()};
  Stranger stranger{world};
  link::Flow* flow = nullptr;
  std::uint64_t sent = 0;

  void SetUp() override {
    world.regions.add(kKey, region, Access::kRemoteRead | Access::kRemoteWrite);
    flow = connect(a, b);
    ASSERT_NE(flow, nullptr);
    b.log.accepts = b.log.acknowledges = false;
  }
  bool both(const std::function<bool()>& holds) { return until({&a, &b}, holds); }
  // The flow of others goes on meanwhile.
  void go_on(std::uint64_t round) {
    if (round % 8 == 0) world.pass(microseconds(20), {&b});
    if (round % 256 != 0) return;
    Bytes bytes = pattern(100, ++sent);
    send(a, b, *flow, sent, bytes);
    a.poll();
    stranger.hear();
  }
  auto of_a() const { return b.log.from(b.log.opened[0].first); }
  void expect_all_arrived() {
    ASSERT_TRUE(both([this] { return of_a().size() >= sent; }));
    const auto messages = of_a();
    ASSERT_EQ(messages.size(), sent);
    for (std::size_t i = 0; i < messages.size(); ++i) {
      EXPECT_EQ(messages[i]->arrival.tag, i + 1);
      EXPECT_TRUE(messages[i]->bytes == pattern(100, i + 1));
    }
    EXPECT_EQ(flow->check_peer(a.ends), link::PeerState::kAlive);
    for (const auto& closed : b.log.closed) EXPECT_NE(closed.source, b.log.opened[0].first);
  }
};

TEST_F(HostilePeerTest, RandomDatagramsAreCountedAndDropped) {
  std::mt19937_64 random(1);
  constexpr std::uint64_t kDatagrams = 20'000;
  for (std::uint64_t i = 1; i <= kDatagrams; ++i) {
    Bytes bytes(1 + random() % 300);
    for (auto& byte : bytes) byte = static_cast<std::byte>(random());
    stranger.send_raw(b, bytes);
    go_on(i);
  }
  expect_all_arrived();
  world.pass(milliseconds(1), {&b});
  EXPECT_EQ(b.stats.dropped(), kDatagrams);
  EXPECT_EQ(b.log.opened.size(), 1u);
}

TEST_F(HostilePeerTest, PacketsByHandAreTakenLikeOthers) {
  ASSERT_TRUE(stranger.agree(b));
  MessageHeader header;
  header.tag = 0xFF;
  stranger.send(b, stranger.message(0, header, 50));
  stranger.send(b, stranger.of_flow(Operation::kWriteOnly, 1, pattern(100, 1)));
  ASSERT_TRUE(both([&] { return region[99] != std::byte{}; }));
  EXPECT_EQ(b.log.messages.at(0).arrival.tag, 0xFFu);
  EXPECT_EQ(b.stats.dropped(), 0u);
}

TEST_F(HostilePeerTest, ChangedCopiesOfRealPacketsDisturbNoFlow) {
  ASSERT_TRUE(stranger.agree(b));
  std::mt19937_64 random(2);
  std::uint64_t spoilt = 0;
  for (int i = 1; i <= 20'000; ++i) {
    const auto number = static_cast<std::uint32_t>(random() % 4);
    MessageHeader header;
    header.kind = static_cast<MessageKind>(1 + random() % 6);
    Bytes bytes;
    switch (random() % 8) {
      case 0:
        bytes = Stranger::message(stranger.req());
        break;
      case 1:
        bytes = Stranger::message(stranger.rep);
        break;
      case 2:
        bytes = Stranger::message(RejMad{wire::CmReason::kStale, 0, 0, {}});
        break;
      case 3:
        bytes = Stranger::message(DreqMad{1, 0, 0, 0, {}});
        break;
      case 4:
        bytes = stranger.of_flow(Operation::kWriteOnly, number, pattern(100, 1));
        break;
      case 5:
        bytes = stranger.of_flow(static_cast<Operation>(random() % 24), number, {});
        break;
      default:
        bytes = stranger.message(number, header, random() % 200);
    }
    for (auto changes = 1 + random() % 3; changes > 0; --changes) {
      bytes[random() % bytes.size()] ^= static_cast<std::byte>(1 + random() % 255);
    }
    if (random() % 2 == 0) {
      ++spoilt;
      bytes.insert(bytes.end(), 4, std::byte{0x77});
      stranger.send_raw(b, bytes);
    } else {
      stranger.send(b, bytes);
    }
    go_on(i);
  }
  expect_all_arrived();
  EXPECT_TRUE(until({&b}, [&] { return b.stats.of(Stat::kIcrcErrors) >= spoilt; }));
  EXPECT_GT(b.stats.of(Stat::kMalformedPackets), 0u);
  EXPECT_GT(b.stats.of(Stat::kPkeyViolations), 0u);
  EXPECT_GT(b.stats.of(Stat::kUnknownQp), 0u);
  EXPECT_GT(b.stats.of(Stat::kUnknownFlow), 0u);
}

// An attacker that knows the numbers of another peer's flow has another address.
TEST_F(HostilePeerTest, AFlowIsItsOwnersOnly) {
  ASSERT_TRUE(stranger.agree(b));
  Stranger thief(world);
  thief.rep = stranger.rep;
  thief.send(b, thief.message(0, {}, 50));
  ASSERT_TRUE(both([&] { return b.stats.of(Stat::kWrongPeer) == 1; }));
  EXPECT_TRUE(b.log.messages.empty());
  stranger.rep.me.queue_key ^= 1;
  stranger.send(b, stranger.message(0, {}, 50));
  ASSERT_TRUE(both([&] { return b.stats.of(Stat::kQkeyViolations) == 1; }));
  EXPECT_TRUE(b.log.messages.empty());
}

// The rendezvous ids are easy to guess, and a REP tells the number of an endpoint to everyone
// that asks.
struct ThirdPartyTest : HostilePeerTest, ::testing::WithParamInterface<bool> {};

INSTANTIATE_TEST_SUITE_P(, ThirdPartyTest, ::testing::Values(false, true), [](const auto& claims) {
  return claims.param ? "AsAnother" : "AsItself";
});

TEST_P(ThirdPartyTest, TakesNoMessageAndFillsNoReceiveOfAnother) {
  if (GetParam()) {
    Stranger spy(world);
    ASSERT_TRUE(spy.agree(a));
    stranger.endpoint_id = spy.rep.me.endpoint_id;
    spy.say(a, spy.goodbye());
  }
  link::Flow* back = connect(b, a);
  ASSERT_NE(back, nullptr);
  a.log.accepts = false;
  Bytes large = pattern(200'000, 1);
  send(b, a, *back, 1, large);
  send(a, b, *flow, 2, large);
  ASSERT_TRUE(both([&] { return !a.log.messages.empty() && !of_a().empty(); }));
  b.log.accept(b.log.messages[0]);  // and a does not look: it is waited for
  ASSERT_TRUE(stranger.agree(b));
  std::mt19937_64 dice(3);
  std::uint32_t number = 0;
  for (const MessageKind kind : {MessageKind::kCts, MessageKind::kTaken, MessageKind::kResult}) {
    for (std::uint32_t rendezvous_id = 0; rendezvous_id < 20; ++rendezvous_id) {
      MessageHeader header;
      header.kind = kind;
      header.rendezvous_id = rendezvous_id;
      header.tag = ECONNRESET;
      header.data = dice();
      stranger.send(b, stranger.message(number++, header, 0));
    }
  }
  world.pass(milliseconds(10), {&b});
  EXPECT_GE(b.stats.of(Stat::kRequests), 60U);
  // A refusal ends what follows it in the flow, so each guess is the first request of one.
  const Bytes bytes = pattern(100, 9);
  for (std::uint32_t rendezvous_id = 0; rendezvous_id < 20; ++rendezvous_id) {
    Stranger guesser(world);
    guesser.endpoint_id = stranger.endpoint_id;
    ASSERT_TRUE(guesser.agree(b));
    wire::Packet headers = guesser.headers(Operation::kWriteOnly, 0);
    headers.reth = {0, receive_key(rendezvous_id), 100};
    guesser.send(b, FlowHand::packet(headers, bytes));
    world.pass(milliseconds(1), {&b});
    EXPECT_EQ(b.stats.of(Stat::kRefusedRequests), rendezvous_id + 1);
    guesser.say(b, guesser.goodbye());
  }
  EXPECT_EQ(b.log.messages[0].error, -1) << "nothing has come of it yet";
  EXPECT_FALSE(b.ends.has(1)) << "no receive has taken it";
  a.log.accept(a.log.messages[0]);
  ASSERT_TRUE(both([&] {
    return b.log.messages[0].error == 0 && a.log.messages[0].error == 0 && b.ends.has(1) &&
           a.ends.has(2);
  }));
  EXPECT_TRUE(a.log.messages[0].bytes == large);
  EXPECT_TRUE(b.log.messages[0].bytes == large);
}

// A peer that answers an atomic operation with numbers of its own choice.
TEST_F(HostilePeerTest, ErrorsThatNoLinkHasDoNotReachTheProgram) {
  Endpoint c(world);
  c.flows.push_back(std::move(c.open(stranger.address)).value());
  const RemoteRange there{0, 8, RegionKey{kKey}};
  Bytes operand(8);
  const LocalRange local{operand.data(), operand.size()};
  link::AtomicRequest request;
  request.action = {AtomicForm::kBase, AtomicOp::kSum, AtomicType::kUint64};
  request.operand = {&local, 1};
  request.remote = {&there, 1};
  request.length = 8;
  const std::uint64_t errors[] = {EACCES, 0x7FFF'FFFF, ~0ULL, EINTR, 1ULL << 32, EFAULT};
  for (std::uint64_t i = 0; i < std::size(errors); ++i) {
    request.cookie = reinterpret_cast<void*>(i);
    ASSERT_EQ(c.flows[0]->atomic(request).state, link::Outcome::State::kPending);
  }
  const auto asked = stranger.await<ReqMad>(c);
  ASSERT_TRUE(asked);
  stranger.say(c, stranger.reply_to(*asked));
  ASSERT_TRUE(stranger.agree(c));
  for (std::uint32_t i = 0; i < std::size(errors); ++i) {
    MessageHeader header;
    header.kind = MessageKind::kResult;
    header.rendezvous_id = 2 + i;  // the first number of an endpoint is 2
    header.tag = errors[i];
    header.data = asked->transaction;
    Bytes bytes(kMessageHeader);
    header.length = 1000 + i;  // no refusal
    write_header(header, bytes.data());
    stranger.send(c, stranger.of_flow(Operation::kSendOnly, i, bytes));
  }
  ASSERT_TRUE(until({&c}, [&] { return c.ends.ended_ones.size() == std::size(errors); }));
  const int expected[] = {EACCES, EPROTO, EPROTO, EPROTO, EPROTO, EFAULT};
  for (std::uint64_t i = 0; i < std::size(errors); ++i) {
    EXPECT_EQ(c.ends.ended_ones[i], (FlowLog::End{expected[i], 0})) << errors[i];
  }
}

// The peer gets RNR NAKs, and may repeat its request when the answers have been acknowledged.
TEST_F(HostilePeerTest, APeerThatAcknowledgesNoResponsesGetsNoMoreAndDisturbsNoOther) {
  ASSERT_TRUE(stranger.agree(b));
  std::uint32_t asked = 0;
  const auto ask = [&] {
    Bytes bytes = Stranger::fetch_sum(asked, 8);
    bytes[kMessageHeader + kRange] = std::byte{1};
    stranger.send(b, stranger.of_flow(Operation::kSendOnly, asked, bytes));
  };
  const auto carried_out = [&] {
    std::uint64_t sum = 0;
    std::memcpy(&sum, region.data(), sizeof sum);
    return sum;
  };
  for (int i = 1; i <= 10'000; ++i) {
    ask();
    go_on(i);
    world.pass(microseconds(12), {&b});
    if (carried_out() > asked) ++asked;
  }
  // One flow holds at most a part of what is left, with room for the largest answer.
  constexpr std::size_t kAnswer = link::kAnswerCost + 8;
  constexpr std::size_t kRoom = link::kAnswerCost + kMaxAtomicBytes;
  constexpr std::size_t kPart = kMessageMemory.divisor;
  constexpr std::size_t kMost = (kMemory / kPart - kRoom) * kPart / (kPart + 1) / kAnswer + 1;
  EXPECT_EQ(carried_out(), kMost);
  expect_all_arrived();
  ASSERT_TRUE(both([&] {
    stranger.refuse(b);
    ask();
    return carried_out() > kMost;
  })) << "what was not carried out is not lost";
}

// Any host can forge the address: alone it makes no flow narrower.
TEST_F(HostilePeerTest, ARequestWithoutKnowledgeOfTheFlowDoesNotChangeIt) {
  const auto flow_of = [&](const ReqMad& req) -> std::optional<RepMad> {
    stranger.say(b, req);
    std::optional<RepMad> answer;
    both([&] {
      for (const FlowMad& said : stranger.hear()) {
        const auto* rep = std::get_if<RepMad>(&said);
        if (rep != nullptr && rep->remote_id == req.local_id) answer = *rep;
      }
      return answer.has_value();
    });
    return answer;
  };
  const ReqMad right = stranger.req();
  const auto first = flow_of(right);
  ASSERT_TRUE(first);
  EXPECT_EQ(first->me.path_mtu, 1024U);
  ReqMad forged = right;
  forged.local_id = right.local_id + 1;
  ++forged.transaction;
  ++forged.me.context;
  forged.me.path_mtu = 256;
  ASSERT_TRUE(flow_of(forged));
  const auto again = flow_of(right);
  ASSERT_TRUE(again);
  EXPECT_EQ(again->local_id, first->local_id);
  EXPECT_EQ(again->me.path_mtu, 1024U);
  ReqMad narrower = right;
  narrower.local_id = forged.local_id + 1;
  ++narrower.transaction;
  narrower.me.path_mtu = 512;
  narrower.continued = {right.transaction, first->local_id};
  const auto known = flow_of(narrower);
  ASSERT_TRUE(known);
  EXPECT_EQ(known->me.path_mtu, 512U) << "a request with the secret of the flow is believed";
  EXPECT_EQ(known->me.context, first->me.context);
}

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr std::uint32_t kReqs = 7'000;  // each takes ten times as long
#else
constexpr std::uint32_t kReqs = 70'000;
#endif

// As often as there are numbers of flows, and more.
TEST_F(HostilePeerTest, EstablishedFlowsAreServedUnderAReqFlood) {
  for (std::uint32_t round = 1; round <= kReqs; ++round) {
    ReqMad req = stranger.req();
    req.local_id = req.me.context = round;
    stranger.say(b, req);
    go_on(static_cast<int>(round));
  }
  expect_all_arrived();
  ASSERT_TRUE(stranger.agree(b)) << "the other host is accepted all the same";
}

// A REQ that was on its way for long would make the two ends cut messages differently.
TEST_F(HostilePeerTest, PacketsOfAnotherSizeAreAgreedToOnceForEachRequest) {
  ASSERT_TRUE(stranger.agree(b));
  using Answer = std::variant<std::size_t, wire::CmReason>;
  const RepMad first = stranger.rep;
  std::uint32_t connection = first.local_id;  // of b
  const auto ask = [&](unsigned number, std::uint32_t replaced, std::size_t path_mtu) {
    ReqMad req = stranger.req();
    req.continued = {first.transaction, replaced};
    req.local_id = number;
    req.transaction += number;
    req.me.path_mtu = path_mtu;
    stranger.say(b, req);
    std::optional<Answer> answer;
    EXPECT_TRUE(until({&b}, [&] {
      const auto last_received = stranger.hear();
      if (const auto rep = Stranger::last<RepMad>(last_received)) {
        answer = rep->me.path_mtu;
        connection = rep->local_id;
      } else if (const auto rej = Stranger::last<RejMad>(last_received)) {
        answer = rej->reason;
      }
      return answer.has_value();
    }));
    return answer.value_or(std::size_t{0});
  };
  const auto confirm = [&](unsigned number) {
    const std::uint64_t transaction = stranger.req().transaction + number;
    stranger.say(b, RtuMad{number, connection, transaction});
    world.pass(microseconds(50), {&b});
  };
  const Answer stale = wire::CmReason::kStale;
  EXPECT_EQ(ask(2, first.local_id + 1, 4096), stale) << "a connection of another flow";
  EXPECT_EQ(ask(3, first.local_id, 4096), Answer(std::size_t{4096}));
  EXPECT_EQ(ask(3, first.local_id, 8896), Answer(std::size_t{4096})) << "the same request";
  confirm(3);
  const std::uint32_t second = connection;
  EXPECT_EQ(ask(4, first.local_id, 1024), stale) << "an old one";
  EXPECT_EQ(ask(5, second, 2048), Answer(std::size_t{2048}));
  confirm(5);
  EXPECT_EQ(ask(6, connection, 8896), Answer(std::size_t{8896}));
}

// The address of a CNP can be forged, and its queue pair is the port. An attacker cannot know
// the transaction id of the flow's REQ.
TEST_F(HostilePeerTest, ANotificationWithoutTheFlowIdentityOfTheFlowSlowsNothingDown) {
  stranger.agree(b);
  b.flows.push_back(std::move(b.open(stranger.address)).value());
  const auto asked = stranger.await<ReqMad>(b);
  ASSERT_TRUE(asked);
  stranger.say(b, stranger.reply_to(*asked));
  ASSERT_TRUE(until({&b}, [&] { return b.flows[0]->reached(); }));
  const auto notify = [&](std::uint32_t flow_identity) {
    wire::Packet headers;
    headers.opcode = wire::kCongestionNotification;
    headers.becn = true;
    headers.destination = roce::queue_pair_at(b.address.port());
    Bytes reserved(16);
    wire::store<std::uint32_t>(reserved.data(), flow_identity);
    stranger.send(b, FlowHand::packet(headers, reserved));
  };
  const std::uint64_t before = b.stats.of(Stat::kUnknownFlow);
  const auto flow_identity = static_cast<std::uint32_t>(asked->transaction);
  for (const std::uint32_t wrong : {0U, 1U, ~flow_identity}) notify(wrong);
  ASSERT_TRUE(until({&b}, [&] { return b.stats.of(Stat::kUnknownFlow) == before + 3; }));
  EXPECT_EQ(b.stats.of(Stat::kCnpsHandled), 0U);
  notify(flow_identity);
  ASSERT_TRUE(until({&b}, [&] { return b.stats.of(Stat::kCnpsHandled) == 1; }));
}

// Errors come back at once from the port of a closed peer; packets that it sent before count first.
TEST_F(HostilePeerTest, WaitingMessagesOfAClosedPeerAreDeliveredFirst) {
  ASSERT_TRUE(stranger.agree(b));
  for (int i = 0; i < 100; ++i) stranger.say(b, stranger.req());
  for (std::uint32_t i = 0; i < 50; ++i) stranger.send(b, stranger.message(i, {}, 50));
  stranger.say(b, stranger.goodbye());
  stranger.go();
  ASSERT_TRUE(until({&b}, [&] { return !b.log.closed.empty(); }));
  EXPECT_EQ(b.log.messages.size(), 50u);
  EXPECT_FALSE(b.log.closed[0].died);
}

TEST_F(HostilePeerTest, ProbesFindAPeerThatIsGoneWithoutADreq) {
  ASSERT_TRUE(stranger.agree(b));
  ASSERT_TRUE(b.log.closed.empty());
  stranger.go();
  ASSERT_TRUE(both([&] { return !b.log.closed.empty(); }));
  EXPECT_TRUE(b.log.closed[0].died);
  EXPECT_EQ(b.log.closed.size(), 1U) << "the other one lives";
  expect_all_arrived();
}

}  // namespace
}  // namespace weft::rdm::testing
