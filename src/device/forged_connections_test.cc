// SPDX-License-Identifier: BSD-2-Clause
// Which messages count for connections within the host, and what becomes of the sources of others?
#include <initializer_list>
#include <random>

#include "base/path_mtu.h"
#include "connections_support.h"
#include "rdm/connection_message.h"
#include "rdm/flow_message.h"
#include "wire/cm_message.h"

namespace weft::device {
namespace {

using namespace mailbox_testing;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr std::uint64_t kTransaction = 0x1234;

Bytes datagram(const wire::CmMessage& message, std::uint64_t transaction = kTransaction) {
  wire::CmMad mad;
  mad.transaction = transaction;
  mad.message = message;
  const auto bytes = wire::write_cm(mad);
  return {bytes.begin(), bytes.end()};
}

// Whole, and as a slot carries it: without the zeros at its end.
std::vector<Bytes> forms_of(const wire::CmMessage& message) {
  const Bytes whole = datagram(message);
  Bytes shortened = whole;
  while (shortened.back() == std::byte{}) shortened.pop_back();
  return {whole, shortened};
}

// A process that sends what it wants, in the name of any port.
struct Stranger {
  std::unique_ptr<link::Flow> flow;

  Stranger(const Party& as, const Party& to)
      : flow(std::move(as.mailbox->connect(to.address)).value()) {}
  void say(const Bytes& bytes) const { send_over(*flow, bytes, link::MessageOperation::kControl); }
  void say(const wire::CmMessage& message) const { say(forms_of(message).back()); }
};

template <class Message>
Message between(std::uint32_t local, std::uint32_t remote) {
  Message message;
  message.local_id = local;
  message.remote_id = remote;
  return message;
}

// Of all kinds but a REQ, with those ids.
std::vector<wire::CmMessage> messages_between(std::uint32_t local, std::uint32_t remote) {
  wire::CmSidrReq query;
  query.request = 1;
  query.service = rdm::connection_service(7300);
  wire::CmSidrRep answer;
  answer.request = local;
  return {between<wire::CmMra>(local, remote),
          between<wire::CmRej>(local, remote),
          between<wire::CmRep>(local, remote),
          between<wire::CmRtu>(local, remote),
          between<wire::CmDreq>(local, remote),
          between<wire::CmDrep>(local, remote),
          between<wire::CmLap>(local, remote),
          between<wire::CmApr>(local, remote),
          query,
          answer};
}

// Of each length zeros, and random bytes.
std::vector<Bytes> nonsense_of(std::initializer_list<std::size_t> lengths) {
  std::mt19937 random(7);
  std::vector<Bytes> nonsense;
  for (const std::size_t length : lengths) {
    nonsense.emplace_back(length);
    Bytes bytes(length);
    for (std::byte& each : bytes) each = static_cast<std::byte>(random());
    nonsense.push_back(bytes);
  }
  return nonsense;
}

TEST_F(MailboxConnectionsTest, SourcesOfNonsenseAreRefused) {
  connect();
  std::vector<Bytes> nonsense = nonsense_of({0, 1, 24, 255, 256, 257, 512, 513, 1024});
  // The management class is the second byte of a MAD.
  wire::CmMad mad;
  mad.message = wire::CmReq{};
  const auto request = wire::write_cm(mad);
  for (const int other_class : {0x01, 0x03, 0x81}) {
    Bytes bytes(request.begin(), request.end());
    bytes[1] = static_cast<std::byte>(other_class);
    nonsense.push_back(bytes);
  }
  for (Party* const to : {listener.get(), requester.get(), acceptor.get()}) {
    for (const Bytes& bytes : nonsense) {
      const Stranger stranger(*listener, *to);
      stranger.say(bytes);
      to->poll();
      EXPECT_TRUE(is_refused(*stranger.flow)) << bytes.size();
    }
  }
  EXPECT_EQ(listener->requests.size(), 1u);
  EXPECT_THAT(listener->withdrawals, IsEmpty());
  expect_data_flow(asking, accepting);
}

TEST_F(MailboxConnectionsTest, MessagesOfNoConnectionRefuseTheirSource) {
  connect();
  for (Party* const to : {listener.get(), requester.get(), acceptor.get()}) {
    for (const auto& message : messages_between(0x8000'1234, 0x8000'4321)) {
      const Stranger stranger(*requester, *to);
      stranger.say(message);
      to->poll();
      EXPECT_TRUE(is_refused(*stranger.flow)) << message.index() << " " << to->address.text();
    }
  }
  EXPECT_EQ(listener->requests.size(), 1u);
  EXPECT_THAT(listener->withdrawals, IsEmpty());
  expect_data_flow(asking, accepting);
}

TEST_F(MailboxConnectionsTest, AnotherSourceThatKnowsTheNumbersEndsNothing) {
  connect();
  const auto expect_refused = [](const Party& as, Party& to, const wire::CmMessage& message) {
    for (const Bytes& bytes : forms_of(message)) {
      const Stranger stranger(as, to);
      stranger.say(bytes);
      to.poll();
      EXPECT_TRUE(is_refused(*stranger.flow)) << message.index() << ", " << bytes.size();
    }
  };
  for (const auto& message : messages_between(accepting.number, asking.number))
    expect_refused(*acceptor, *requester, message);
  for (const auto& message : messages_between(asking.number, accepting.number))
    expect_refused(*requester, *acceptor, message);
  EXPECT_THAT(asking.log, ElementsAre("connected "));
  EXPECT_THAT(accepting.log, ElementsAre("connected "));
  expect_data_flow(asking, accepting);
}

// The bytes are those of the peer's own DREQ.
TEST_F(MailboxConnectionsTest, ACopyOfADisconnectionFromAnotherSourceEndsNothing) {
  for (const bool by_requester : {true, false}) {
    Program& one = add(*requester);
    Program& other = add(*acceptor);
    connect(one, other);
    Party& from = by_requester ? *requester : *acceptor;
    Party& to = by_requester ? *acceptor : *requester;
    const Program& hears = by_requester ? other : one;
    to.holds = true;
    from.connections->disconnect(by_requester ? one.number : other.number);
    to.poll();
    to.holds = false;
    ASSERT_EQ(to.held.size(), 1u);
    const auto [source, bytes] = to.held[0];
    to.held.clear();
    EXPECT_LT(bytes.size(), wire::kMadBytes);
    const Stranger stranger(from, to);
    stranger.say(bytes);
    to.poll();
    EXPECT_TRUE(is_refused(*stranger.flow));
    EXPECT_THAT(hears.log, ElementsAre("connected "));
    to.mailbox_connections->take(source, to.senders[source], bytes);
    EXPECT_THAT(hears.log, ElementsAre("connected ", "ended"));
  }
}

TEST_F(MailboxConnectionsTest, AnotherSourceEndsNoAttempt) {
  ASSERT_TRUE(request(asking).ok());
  listener->poll();
  ASSERT_TRUE(accept(accepting).ok());
  for (const auto& message : messages_between(asking.number, accepting.number)) {
    const Stranger stranger(*requester, *acceptor);
    stranger.say(message);
    acceptor->poll();
    EXPECT_TRUE(is_refused(*stranger.flow)) << message.index();
  }
  EXPECT_THAT(accepting.log, IsEmpty());
  requester->poll();
  acceptor->poll();
  expect_data_flow(asking, accepting);
}

TEST_F(MailboxConnectionsTest, TheSourceOfOneConnectionDoesNotEndAnother) {
  connect();
  Program& second_asking = add(*requester);
  Program& second_accepting = add(*acceptor);
  connect(second_asking, second_accepting);
  wire::CmMad mad;
  mad.message = between<wire::CmDreq>(asking.number, accepting.number);
  const auto bytes = wire::write_cm(mad);
  send_over(*second_asking.flow, bytes, link::MessageOperation::kControl);
  settle();
  expect_data_flow(asking, accepting);
  EXPECT_TRUE(is_refused(*second_asking.flow));
  EXPECT_THAT(second_accepting.log, ElementsAre("connected ", "ended"));
}

TEST_F(MailboxConnectionsTest, APeerThatSendsNonsenseEndsItsOwnConnection) {
  connect();
  send_over(*asking.flow, bytes_of("GET / HTTP/1.0"), link::MessageOperation::kControl);
  settle();
  EXPECT_THAT(accepting.log, ElementsAre("connected ", "ended"));
  EXPECT_EQ(acceptor->refusals, 1);
  accepting.flow.reset();
  settle();
  EXPECT_THAT(asking.log, ElementsAre("connected ", "ended"));
}

// The hostile peer answers two requests by one slot.
TEST_F(MailboxConnectionsTest, ASourceThatAcceptsASecondRequestIsRefused) {
  Program& second = add(*requester);
  ASSERT_TRUE(request(asking).ok());
  ASSERT_TRUE(request(second).ok());
  listener->poll();
  ASSERT_EQ(listener->requests.size(), 2u);
  Stranger stranger(*acceptor, *requester);
  for (const auto& [number, received] : listener->requests) {
    auto rep = between<wire::CmRep>(number, std::get<wire::CmReq>(received.req.message).local_id);
    rep.ca_guid = 1;
    stranger.say(datagram(rep, received.req.transaction));
  }
  requester->poll();
  EXPECT_TRUE(is_refused(*stranger.flow));
  stranger.flow.reset();
  settle();
  EXPECT_THAT(asking.log, ElementsAre("connected ", "ended"));
  EXPECT_THAT(second.log, IsEmpty());
  requester->connections->disconnect(second.number);
}

wire::CmReq some_request(std::uint32_t number) {
  wire::CmReq req;
  req.local_id = number;
  req.service = rdm::connection_service(7300);
  req.transport = 2;
  req.eecn = number;
  return req;
}

// The same by a hostile requester.
TEST_F(MailboxConnectionsTest, ASourceThatConfirmsASecondReplyIsRefused) {
  Program& second = add(*acceptor);
  const auto mads = std::move(shm::MadSender::open(requester->sender, listener->address)).value();
  std::uint32_t number = 0;
  for (Program* const each : {&accepting, &second}) {
    ASSERT_TRUE(mads->send(datagram(some_request(++number))).ok());
    listener->poll();
    ASSERT_TRUE(accept(*each).ok());
  }
  Stranger stranger(*requester, *acceptor);
  stranger.say(between<wire::CmRtu>(1, accepting.number));
  stranger.say(between<wire::CmRtu>(2, second.number));
  acceptor->poll();
  EXPECT_TRUE(is_refused(*stranger.flow));
  stranger.flow.reset();
  acceptor->poll();
  EXPECT_THAT(accepting.log, ElementsAre("connected ", "ended"));
  EXPECT_THAT(second.log, IsEmpty());
}

TEST_F(MailboxConnectionsTest, ARequestInASlotRefusesItsSource) {
  const Stranger stranger(*requester, *listener);
  stranger.say(some_request(1));
  settle();
  EXPECT_TRUE(is_refused(*stranger.flow));
  EXPECT_THAT(listener->requests, IsEmpty());
}

TEST_F(MailboxConnectionsTest, ARequestIsSentToAnAddressOfThisHost) {
  const auto sender = std::move(shm::MadSender::open(acceptor->sender, listener->address)).value();
  std::uint32_t number = 0;
  for (const char* const host : {"127.0.0.9", "192.0.2.1", "::1"}) {
    wire::CmReq req = rdm::write_request({.me = {.context = ++number, .path_mtu = kLeastPathMtu},
                                          .name = acceptor->address,
                                          .listener = os::address_of(host, 7300)});
    req.service = rdm::connection_service(7300);
    req.local_id = number;
    ASSERT_TRUE(sender->send(datagram(req)).ok());
    listener->poll();
    ASSERT_EQ(listener->requests.size(), number);
    const os::SocketAddress& asked = listener->requests.back().second.asked;
    EXPECT_EQ(asked.text(), number == 1 ? "127.0.0.9:7300" : os::SocketAddress().text()) << host;
  }
}

TEST_F(MailboxConnectionsTest, DatagramsOfNonsenseChangeNothing) {
  connect();
  std::vector<Bytes> nonsense = nonsense_of({0, 1, 24, 255, 256, 257, 512});
  const std::size_t illegible = nonsense.size();
  for (const auto& message : messages_between(asking.number, accepting.number))
    nonsense.push_back(datagram(message));
  for (const auto& message : messages_between(accepting.number, asking.number))
    nonsense.push_back(datagram(message));
  const std::size_t rejections = 2;  // one for each end, the only ones that need no slot
  const std::size_t messages = nonsense.size() - illegible;
  for (Party* const to : {listener.get(), requester.get(), acceptor.get()}) {
    const std::uint64_t malformed = to->stats.of(Stat::kMalformedPackets);
    const std::uint64_t legible = to->stats.of(Stat::kConnectionMessages);
    const std::uint64_t invalid = to->stats.of(Stat::kInvalidMessages);
    for (const Bytes& bytes : nonsense) {
      ASSERT_TRUE(shm::MadSender::open(acceptor->sender, to->address).value()->send(bytes).ok());
      settle();
    }
    EXPECT_EQ(to->stats.of(Stat::kMalformedPackets) - malformed, illegible);
    EXPECT_EQ(to->stats.of(Stat::kConnectionMessages) - legible, messages);
    EXPECT_GE(to->stats.of(Stat::kInvalidMessages) - invalid, messages - rejections);
  }
  EXPECT_EQ(listener->requests.size(), 1u);
  EXPECT_THAT(listener->withdrawals, IsEmpty());
  expect_data_flow(asking, accepting);
}

TEST_F(MailboxConnectionsTest, ARequestWithoutAnAddressIsMalformed) {
  const auto sender = std::move(shm::MadSender::open(acceptor->sender, listener->address)).value();
  acceptor->sender.address = os::SocketAddress();
  ASSERT_TRUE(sender->send(datagram(some_request(1))).ok());
  listener->poll();
  EXPECT_EQ(listener->stats.of(Stat::kMalformedPackets), 1U);
  EXPECT_THAT(listener->requests, IsEmpty());
}

// They name a port that is not there, as its process would that has died.
TEST_F(MailboxConnectionsTest, RequestsOfAPortThatIsGoneEnd) {
  Party other(directory, 7303);
  const auto sender = std::move(shm::MadSender::open(other.sender, listener->address)).value();
  other.sender.address = os::loopback(7999);
  for (std::uint32_t i = 1; i <= 100; ++i)
    ASSERT_TRUE(sender->send(datagram(some_request(i))).ok() || (listener->poll(), true));
  listener->poll();
  const std::size_t reported = listener->requests.size();
  EXPECT_GE(reported, 64u);
  EXPECT_TRUE(check_until(*listener, [&] { return listener->withdrawals.size() == reported; }));
}

// Leaves no room for a datagram.
void fill(const Party& listener, const Party& from) {
  const auto sender = std::move(shm::MadSender::open(from.sender, listener.address)).value();
  while (sender->send(datagram(wire::CmRtu{})).ok()) {
  }
}

TEST_F(MailboxConnectionsTest, ARequestWaitsForRoomAtItsListener) {
  const Party other(directory, 7303);
  fill(*listener, other);
  ASSERT_TRUE(request(asking).ok());
  EXPECT_TRUE(requester->mailbox_connections->send_again());
  listener->poll();
  EXPECT_THAT(listener->requests, IsEmpty());
  EXPECT_TRUE(
      check_until(*requester, [&] { return !requester->mailbox_connections->send_again(); }));
  listener->poll();
  ASSERT_TRUE(accept(accepting).ok());
  settle();
  expect_data_flow(asking, accepting);
}

TEST_F(MailboxConnectionsTest, ARepeatedRequestOfAPeerThatDoesNotReadDrawsNoFurtherAnswer) {
  Party other(directory, 7303);
  fill(other, *requester);
  const auto sender = std::move(shm::MadSender::open(other.sender, listener->address)).value();
  const Bytes request = datagram(some_request(1));
  for (int i = 0; i < 1000; ++i) {
    while (!sender->send(request).ok()) listener->poll();
  }
  listener->poll();
  EXPECT_EQ(listener->requests.size(), 1u);
  const auto answered = [&] {
    other.poll();
    return !listener->mailbox_connections->send_again();
  };
  EXPECT_TRUE(check_until(*listener, answered));
  other.poll();
  EXPECT_LE(other.stats.of(Stat::kConnectionMessages), shm::kMads + 1);
}

TEST_F(MailboxConnectionsTest, ARequestThatFoundNoRoomIsWithdrawnSilently) {
  const Party other(directory, 7303);
  fill(*listener, other);
  ASSERT_TRUE(request(asking).ok());
  requester->connections->disconnect(asking.number);
  EXPECT_FALSE(requester->mailbox_connections->send_again());
  settle();
  EXPECT_THAT(listener->requests, IsEmpty());
  expect_nothing_left();
}

}  // namespace
}  // namespace weft::device
