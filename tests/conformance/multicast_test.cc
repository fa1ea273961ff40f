// SPDX-License-Identifier: BSD-2-Clause
// Does a send to a multicast group reach its members, and no others? (fi_cm(3), fi_join)
#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <rdma/fi_cm.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>
#include <map>
#include <memory>
#include <set>
#include <variant>
#include <vector>

#include "support/delivery.h"
#include "support/local_party.h"
#include "support/peer_process.h"

namespace weft::conformance {
namespace {

// Groups of this process: tests that run beside it must not hear each other.
std::uint16_t own_port(int which = 0) {
  return static_cast<std::uint16_t>(20000 + (getpid() * 4 + which) % 40000);
}

// An address of either family.
using SockAddr = std::variant<sockaddr_in, sockaddr_in6>;

const void* bytes_of(const SockAddr& address) {
  return std::visit([](const auto& each) -> const void* { return &each; }, address);
}

SockAddr ipv4(const char* text, std::uint16_t port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  EXPECT_EQ(inet_pton(AF_INET, text, &address.sin_addr), 1);
  return address;
}

// Of link scope, too, without an interface: that is the endpoint's.
SockAddr ipv6(const char* text, std::uint16_t port) {
  sockaddr_in6 address{};
  address.sin6_family = AF_INET6;
  address.sin6_port = htons(port);
  EXPECT_EQ(inet_pton(AF_INET6, text, &address.sin6_addr), 1);
  return address;
}

bool is_ipv6() { return usual_format() == FI_SOCKADDR_IN6; }

SockAddr group_at(std::uint16_t port) {
  return is_ipv6() ? ipv6("ff12::5746", port) : ipv4("224.0.1.129", port);
}

// Joins and waits for the event that says so.
Fid<fid_mc> join(Endpoint& endpoint, const SockAddr& group, std::uint64_t flags = 0,
                 void* context = nullptr) {
  auto mc = open_fid<fid_mc>(
      [&](fid_mc** out) { return fi_join(endpoint.ep(), bytes_of(group), flags, out, context); });
  if (mc == nullptr) return mc;
  std::uint32_t event = 0;
  fi_eq_entry entry{};
  EXPECT_EQ(fi_eq_read(endpoint.eq(), &event, &entry, sizeof entry, 0),
            static_cast<ssize_t>(sizeof entry));
  EXPECT_EQ(event, static_cast<std::uint32_t>(FI_JOIN_COMPLETE));
  EXPECT_EQ(entry.fid, &mc->fid);
  EXPECT_EQ(entry.context, context);
  return mc;
}

ssize_t send_to(Endpoint& endpoint, fi_addr_t group, const iovec& piece, void* context = nullptr) {
  const fi_msg message = message_of({&piece, 1}, group, context);
  return fi_sendmsg(endpoint.ep(), &message, FI_MULTICAST);
}
ssize_t send_to(Endpoint& endpoint, fi_addr_t group, std::vector<std::uint8_t>& bytes,
                void* context = nullptr) {
  return send_to(endpoint, group, iovec{bytes.data(), bytes.size()}, context);
}

class Multicast : public testing::Test {
 protected:
  Multicast() {
    for (auto& member : members_) {
      member = std::make_unique<LocalParty>(domain_, datagrams(), &pump_);
    }
  }
  void SetUp() override {
    for (const auto& member : members_) ASSERT_TRUE(member->ok());
  }
  Endpoint& endpoint(std::size_t i) { return members_[i]->endpoint(); }
  Token post(std::size_t i) {
    return members_[i]->post(
        {.kind = Kind::kRecv, .length = bytes_.size(), .peer = FI_ADDR_UNSPEC});
  }
  // Each of these members hears what one sends.
  void expect_heard(std::size_t from, fi_addr_t group, const std::map<std::size_t, Token>& by) {
    auto waiting = by;
    EXPECT_TRUE(until_heard([&] { send_and_complete(from, group); },
                            [&](std::chrono::milliseconds limit) {
                              std::erase_if(waiting, [&](const auto& one) {
                                return hears(one.first, one.second, limit);
                              });
                              return waiting.empty();
                            }));
    pump_.settle();
  }
  void send_and_complete(std::size_t from, fi_addr_t group) {
    ASSERT_EQ(send_to(endpoint(from), group, bytes_, this), 0);
    expect_sent(from, 0);
  }
  // The send of context `this` ends.
  void expect_sent(std::size_t from, int error) {
    std::optional<Completion> sent;
    pump_.until([&] { return (sent = endpoint(from).take(this)).has_value(); });
    ASSERT_TRUE(sent.has_value());
    EXPECT_EQ(sent->err, error);
    EXPECT_EQ(sent->flags & (FI_MULTICAST | FI_SEND), FI_MULTICAST | FI_SEND);
  }
  bool hears(std::size_t i, Token token, std::chrono::milliseconds limit) {
    const auto heard = members_[i]->look_for(token, limit);
    if (heard) expect_message(i, token, *heard);
    return heard.has_value();
  }
  void expect_message(std::size_t i, Token token, const Completion& c) {
    EXPECT_EQ(c.err, 0);
    EXPECT_EQ(c.length, bytes_.size());
    EXPECT_EQ(c.flags & (FI_MULTICAST | FI_RECV | FI_MSG), FI_MULTICAST | FI_RECV | FI_MSG);
    EXPECT_EQ(members_[i]->buffer_of(token).data()[5], bytes_[5]);
  }

  Pump pump_;
  std::shared_ptr<Domain> domain_ = std::make_shared<Domain>(datagrams());
  std::unique_ptr<LocalParty> members_[3];
  const std::uint16_t port_ = own_port();
  const SockAddr group_ = group_at(port_);
  std::vector<std::uint8_t> bytes_ = std::vector<std::uint8_t>(200, 0x5a);
};

// (fi_cq(3): FI_EFAULT)
TEST_F(Multicast, ABufferThatIsNotMappedIsAnError) {
  const Fid<fid_mc> joined = join(endpoint(0), group_);
  ASSERT_NE(joined, nullptr);
  void* const nothing = ::mmap(nullptr, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(nothing, MAP_FAILED);
  const Token waiting = post(0);
  ASSERT_EQ(send_to(endpoint(0), fi_mc_addr(joined.get()), iovec{nothing, 100}, this), 0);
  expect_sent(0, FI_EFAULT);
  expect_heard(0, fi_mc_addr(joined.get()), {{0, waiting}});
  ::munmap(nothing, 4096);
}

TEST_F(Multicast, EveryMemberHearsTheSenderToo) {
  std::vector<Fid<fid_mc>> joined;
  std::map<std::size_t, Token> waiting;
  for (std::size_t i = 0; i < 3; ++i) {
    joined.push_back(join(endpoint(i), group_, 0, &bytes_));
    ASSERT_NE(joined.back(), nullptr);
    waiting[i] = post(i);
  }
  expect_heard(0, fi_mc_addr(joined[0].get()), waiting);
}

TEST_F(Multicast, OnlyReceiversHearAndFormerMembersDoNot) {
  const auto sender = join(endpoint(0), group_, FI_SEND);
  auto receiver = join(endpoint(1), group_, FI_RECV);
  const auto other = join(endpoint(2), group_at(own_port(1)));
  ASSERT_TRUE(sender != nullptr && receiver != nullptr && other != nullptr);
  const Token tokens[] = {post(0), post(1), post(2)};
  expect_heard(0, fi_mc_addr(sender.get()), {{1, tokens[1]}});
  const Token later = post(1);
  receiver.reset();
  ASSERT_EQ(send_to(endpoint(0), fi_mc_addr(sender.get()), bytes_), 0);
  EXPECT_EQ(members_[1]->leftovers(), 0u);
  EXPECT_EQ(members_[2]->leftovers(), 0u) << "another group";
  EXPECT_EQ(members_[0]->cancel(tokens[0]), 0) << "it did not ask to hear";
  EXPECT_EQ(members_[1]->cancel(later), 0);
  EXPECT_EQ(members_[2]->cancel(tokens[2]), 0);
}

TEST_F(Multicast, ItsAddressGoesWithItsFlagOnly) {
  const auto both = join(endpoint(0), group_);
  const auto receives = join(endpoint(1), group_, FI_RECV);
  ASSERT_TRUE(both != nullptr && receives != nullptr);
  const fi_addr_t peer = members_[0]->insert(members_[1]->name());
  EXPECT_EQ(fi_send(endpoint(0).ep(), bytes_.data(), 10, nullptr, fi_mc_addr(both.get()), nullptr),
            -FI_EINVAL);
  EXPECT_EQ(send_to(endpoint(0), peer, bytes_), -FI_EINVAL);
  EXPECT_EQ(send_to(endpoint(1), fi_mc_addr(receives.get()), bytes_), -FI_EACCES);
  EXPECT_EQ(send_to(endpoint(2), fi_mc_addr(both.get()), bytes_), -FI_EINVAL) << "has not joined";
}

TEST_F(Multicast, AsADefaultFlagItHoldsForEveryFormOfSending) {
  Options options = datagrams();
  options.tx_flags = FI_MULTICAST;
  LocalParty sender(std::make_shared<Domain>(options), options, &pump_);
  ASSERT_TRUE(sender.ok());
  const auto sends = join(sender.endpoint(), group_, FI_SEND);
  const auto receives = join(endpoint(1), group_, FI_RECV);
  ASSERT_TRUE(sends != nullptr && receives != nullptr);
  for (const Kind kind :
       {Kind::kSend, Kind::kSendv, Kind::kInject, Kind::kSenddata, Kind::kInjectdata}) {
    const Token token = post(1);
    const auto seed = static_cast<std::uint64_t>(kind) + 1;
    const Completion c = deliver(
        sender, {.kind = kind, .length = 200, .seed = seed, .peer = fi_mc_addr(sends.get())},
        *members_[1], token);
    EXPECT_NE(c.flags & FI_MULTICAST, 0u) << traits(kind).name;
    members_[1]->expect_data(token, seed, 200);
  }
}

TEST_F(Multicast, AddressesThatCannotBeJoinedAreRefused) {
  fid_mc* mc = nullptr;
  const SockAddr host = is_ipv6() ? ipv6("::1", port_) : ipv4("127.0.0.1", port_);
  const SockAddr other = is_ipv6() ? ipv4("224.0.1.129", port_) : ipv6("ff02::1", port_);
  fid_ep* ep = endpoint(0).ep();
  EXPECT_EQ(fi_join(ep, bytes_of(host), 0, &mc, nullptr), -FI_EINVAL);
  EXPECT_EQ(fi_join(ep, bytes_of(other), 0, &mc, nullptr), -FI_EINVAL);
  EXPECT_EQ(fi_join(ep, nullptr, 0, &mc, nullptr), -FI_EINVAL);
  EXPECT_EQ(fi_join(ep, bytes_of(group_), 0, nullptr, nullptr), -FI_EINVAL);
  EXPECT_EQ(fi_join(ep, bytes_of(group_), FI_MULTICAST, &mc, nullptr), -FI_EBADFLAGS);
  const auto joined = join(endpoint(0), group_);
  ASSERT_NE(joined, nullptr);
  EXPECT_EQ(fi_join(ep, bytes_of(group_), 0, &mc, nullptr), -FI_EADDRINUSE);
  EXPECT_EQ(fi_close(&ep->fid), -FI_EBUSY) << "a group stands on it";
}

TEST_F(Multicast, AnEndpointNeedsAnEventQueueAndTheCapability) {
  Options plain = datagrams();
  plain.caps &= ~FI_MULTICAST;
  LocalParty without(std::make_shared<Domain>(plain), plain, &pump_);
  ASSERT_TRUE(without.ok());
  fid_mc* mc = nullptr;
  EXPECT_EQ(fi_join(without.endpoint().ep(), bytes_of(group_), 0, &mc, nullptr), -FI_EOPNOTSUPP);
  auto bare = open_fid<fid_ep>(
      [&](fid_ep** out) { return fi_endpoint(domain_->get(), domain_->info(), out, nullptr); });
  ASSERT_NE(bare, nullptr);
  EXPECT_EQ(fi_join(bare.get(), bytes_of(group_), 0, &mc, nullptr), -FI_EOPBADSTATE);
  ASSERT_EQ(fi_ep_bind(bare.get(), &endpoint(0).av()->fid, 0), 0);
  ASSERT_EQ(fi_ep_bind(bare.get(), &endpoint(0).cq()->fid, FI_TRANSMIT | FI_RECV), 0);
  ASSERT_EQ(fi_enable(bare.get()), 0);
  EXPECT_EQ(fi_join(bare.get(), bytes_of(group_), 0, &mc, nullptr), -FI_ENOEQ);
}

// A member in a process of its own: joins, hears `kRounds` messages and leaves.
constexpr int kRounds = 20;

void live_as_member(Channel& to_test) {
  std::uint16_t port = 0;
  if (!to_test.receive(&port)) return;
  Pump pump;
  LocalParty party(std::make_shared<Domain>(datagrams()), datagrams(), &pump);
  if (!party.ok()) return;
  auto mc = join(party.endpoint(), group_at(port));
  std::vector<Token> tokens;
  for (int i = 0; i < kRounds; ++i) {
    tokens.push_back(party.post({.kind = Kind::kRecv, .length = 200, .peer = FI_ADDR_UNSPEC}));
  }
  to_test.send(mc != nullptr);
  std::set<std::uint32_t> numbers;
  for (const Token token : tokens) {
    party.wait_success(token);
    std::uint32_t number = 0;
    std::memcpy(&number, party.buffer_of(token).data(), sizeof number);
    EXPECT_TRUE(numbers.insert(number).second) << number << " came twice";
  }
  mc.reset();
  to_test.send(true);
}

TEST_F(Multicast, MembersInOtherProcessesHear) {
  std::vector<std::unique_ptr<PeerProcess>> peers;
  for (int i = 0; i < 3; ++i) {
    peers.push_back(std::make_unique<PeerProcess>(live_as_member));
    ASSERT_TRUE(peers.back()->channel().send(port_));
  }
  const auto sends = join(endpoint(0), group_, FI_SEND);
  ASSERT_NE(sends, nullptr);
  bool ready = false;
  for (auto& peer : peers) ASSERT_TRUE(peer->channel().receive(&ready) && ready);
  const auto send_some = [&, number = std::uint32_t{0}]() mutable {
    for (int i = 0; i < kRounds; ++i) {
      ++number;
      std::memcpy(bytes_.data(), &number, sizeof number);
      ASSERT_EQ(send_to(endpoint(0), fi_mc_addr(sends.get()), bytes_), 0);
      endpoint(0).poll();
    }
  };
  EXPECT_TRUE(until_heard(send_some, [&](std::chrono::milliseconds limit) {
    bool left = false;
    while (!peers.empty() && peers.back()->channel().receive(&left, {}, limit)) peers.pop_back();
    return peers.empty();
  }));
  EXPECT_EQ(send_to(endpoint(0), fi_mc_addr(sends.get()), bytes_), 0) << "to no member";
}

}  // namespace
}  // namespace weft::conformance
