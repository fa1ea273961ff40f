// SPDX-License-Identifier: BSD-2-Clause
// Which addresses and ports can an id be bound to? (rdma_bind_addr(3), rdma_listen(3))
#include <ifaddrs.h>

#include <memory>

#include "support/parties.h"

namespace weft::rdmacm_conformance {
namespace {

int bind_errno(const Owned<rdma_cm_id>& id, const char* host, std::uint16_t port = 0) {
  return errno_of(rdma_bind_addr(id.get(), Address(host, port).get()));
}

class BoundTo : public testing::TestWithParam<const char*> {
 protected:
  Channel channel_;
};

using ConcreteAddress = BoundTo;

TEST_P(ConcreteAddress, BindsTheDeviceAndAPortThatIsChosen) {
  const auto id = new_id(channel_.get());
  EXPECT_EQ(id->verbs, nullptr);
  ASSERT_EQ(bind_errno(id, GetParam()), 0);
  EXPECT_NE(id->verbs, nullptr);
  ASSERT_NE(id->pd, nullptr);
  EXPECT_EQ(id->pd->context, id->verbs);
  EXPECT_EQ(id->port_num, 1);
  EXPECT_NE(source_port(*id), 0);
  EXPECT_EQ(Address::of(rdma_get_local_addr(id.get())).text(),
            Address(GetParam(), source_port(*id)).text());
  EXPECT_FALSE(channel_.is_readable());
}

TEST_P(ConcreteAddress, GivesAllIdsOneContextAndOneProtectionDomain) {
  const auto first = new_id(channel_.get());
  const auto second = new_id(channel_.get(), RDMA_PS_UDP);
  ASSERT_EQ(bind_errno(first, GetParam()), 0);
  ASSERT_EQ(bind_errno(second, GetParam()), 0);
  EXPECT_EQ(first->verbs, second->verbs);
  EXPECT_EQ(first->pd, second->pd);
  EXPECT_NE(source_port(*first), source_port(*second));
}

TEST_P(ConcreteAddress, IsBoundToThePortThatTheProgramNames) {
  const std::uint16_t port = free_port();
  const auto id = new_id(channel_.get());
  ASSERT_EQ(bind_errno(id, GetParam(), port), 0);
  EXPECT_EQ(source_port(*id), port);
}

INSTANTIATE_TEST_SUITE_P(Bind, ConcreteAddress, testing::Values(kIpv4Loopback, kIpv6Loopback));

using Wildcard = BoundTo;

TEST_P(Wildcard, BindsNoDevice) {
  const auto id = new_id(channel_.get());
  ASSERT_EQ(bind_errno(id, GetParam()), 0);
  EXPECT_EQ(id->verbs, nullptr);
  EXPECT_EQ(id->pd, nullptr);
  EXPECT_NE(source_port(*id), 0);
  ASSERT_EQ(errno_of(rdma_listen(id.get(), 0)), 0);
  EXPECT_EQ(id->verbs, nullptr);
}

INSTANTIATE_TEST_SUITE_P(Bind, Wildcard, testing::Values(kIpv4Any, kIpv6Any));

TEST(Bind, ToAnAddressThatNoHostHasIsRefused) {
  Channel channel;
  const auto id = new_id(channel.get());
  EXPECT_EQ(bind_errno(id, kForeignIpv4), EADDRNOTAVAIL);
  EXPECT_EQ(bind_errno(id, kForeignIpv6), EADDRNOTAVAIL);
  EXPECT_EQ(id->verbs, nullptr);
  EXPECT_EQ(source_port(*id), 0);
  // The id goes on.
  EXPECT_EQ(bind_errno(id, kIpv4Loopback), 0);
}

// WEFT_IFACE names the loopback: other interfaces have no device.
TEST(Bind, ToAnAddressOfAnInterfaceWithoutADeviceIsRefused) {
  ifaddrs* found = nullptr;
  ASSERT_EQ(::getifaddrs(&found), 0);
  const std::unique_ptr<ifaddrs, decltype(&::freeifaddrs)> list(found, &::freeifaddrs);
  Channel channel;
  bool has_one = false;
  for (const ifaddrs* each = list.get(); each != nullptr; each = each->ifa_next) {
    if (each->ifa_addr == nullptr || each->ifa_addr->sa_family != AF_INET) continue;
    if (std::string_view(each->ifa_name) == "lo") continue;
    const auto id = new_id(channel.get());
    EXPECT_EQ(errno_of(rdma_bind_addr(id.get(), Address::of(each->ifa_addr).get())), ENODEV);
    has_one = true;
  }
  if (!has_one) GTEST_SKIP() << "this host has the loopback alone";
}

// No interface has such an address of IPv6.
TEST(Bind, ToAnIpv4AddressInOneOfIpv6IsRefused) {
  Channel channel;
  const auto id = new_id(channel.get());
  EXPECT_NE(bind_errno(id, "::ffff:127.0.0.1"), 0);
  EXPECT_EQ(id->verbs, nullptr);
}

TEST(Bind, TwiceIsRefused) {
  Channel channel;
  const auto id = new_id(channel.get());
  ASSERT_EQ(bind_errno(id, kIpv4Loopback), 0);
  const std::uint16_t port = source_port(*id);
  EXPECT_EQ(bind_errno(id, kIpv4Loopback), EINVAL);
  EXPECT_EQ(source_port(*id), port);
}

TEST(Bind, OfASecondIdToAPortInUseIsRefused) {
  Channel channel;
  const auto first = new_id(channel.get());
  ASSERT_EQ(bind_errno(first, kIpv4Loopback), 0);
  const auto second = new_id(channel.get());
  EXPECT_EQ(bind_errno(second, kIpv4Loopback, source_port(*first)), EADDRINUSE);
  EXPECT_EQ(bind_errno(second, kIpv4Any, source_port(*first)), EADDRINUSE);
  EXPECT_EQ(second->verbs, nullptr);
  EXPECT_EQ(second->pd, nullptr);
  EXPECT_EQ(source_port(*second), 0);
  EXPECT_EQ(bind_errno(second, kIpv4Loopback), 0);
}

TEST(Bind, ToAPortWhoseIdWasDestroyedSucceeds) {
  Channel channel;
  auto first = new_id(channel.get());
  ASSERT_EQ(bind_errno(first, kIpv4Loopback), 0);
  const std::uint16_t port = source_port(*first);
  ASSERT_EQ(errno_of(rdma_listen(first.get(), 0)), 0);
  first.reset();
  const auto second = new_id(channel.get());
  EXPECT_EQ(bind_errno(second, kIpv4Loopback, port), 0);
}

TEST(Bind, ToAPortOfAnyUdpSocketIsRefused) {
  const BoundSocket other(Address{kIpv4Loopback});
  Channel channel;
  const auto id = new_id(channel.get());
  EXPECT_EQ(bind_errno(id, kIpv4Loopback, other.port()), EADDRINUSE);
  EXPECT_EQ(bind_errno(id, kIpv4Any, other.port()), EADDRINUSE);
  EXPECT_EQ(bind_errno(id, kIpv6Any, other.port()), EADDRINUSE);
  EXPECT_EQ(bind_errno(id, kIpv6Loopback, other.port()), 0);
}

TEST(Bind, ToOnePortInSeveralPortSpacesSucceeds) {
  Channel channel;
  const auto first = listen_at(channel, kIpv4Loopback, RDMA_PS_TCP);
  const std::uint16_t port = source_port(*first);
  const auto second = new_id(channel.get(), RDMA_PS_UDP);
  const auto third = new_id(channel.get(), RDMA_PS_IB);
  ASSERT_EQ(bind_errno(second, kIpv4Loopback, port), 0);
  ASSERT_EQ(bind_errno(third, kIpv4Loopback, port), 0);
  EXPECT_EQ(errno_of(rdma_listen(second.get(), 0)), 0);
  EXPECT_EQ(errno_of(rdma_listen(third.get(), 0)), 0);
  // Each port space has its own listener.
  Channel connecting;
  const auto client = resolved_to(connecting, Address(kIpv4Loopback, port), RDMA_PS_IB);
  rdma_conn_param wanted = parameters_with();
  wanted.qp_num = 77;
  ASSERT_EQ(errno_of(rdma_connect(client.get(), &wanted)), 0);
  const Event request = channel.expect(RDMA_CM_EVENT_CONNECT_REQUEST);
  EXPECT_EQ(request.listen_id, third.get());
  ASSERT_NE(request.id, nullptr);
  EXPECT_EQ(request.id->ps, RDMA_PS_IB);
  const Owned<rdma_cm_id> server(request.id);
}

// RDMA_OPTION_ID_REUSEADDR of both.
TEST(Bind, OfIdsThatReuseAddressesShareAPortUntilOneListens) {
  Channel channel;
  int on = 1;
  const auto first = new_id(channel.get());
  const auto second = new_id(channel.get());
  const auto third = new_id(channel.get());
  for (const auto* each : {&first, &second}) {
    ASSERT_EQ(errno_of(rdma_set_option(each->get(), RDMA_OPTION_ID, RDMA_OPTION_ID_REUSEADDR, &on,
                                       sizeof on)),
              0);
  }
  ASSERT_EQ(bind_errno(first, kIpv4Loopback), 0);
  EXPECT_EQ(bind_errno(second, kIpv4Loopback, source_port(*first)), 0);
  EXPECT_EQ(bind_errno(third, kIpv4Loopback, source_port(*first)), EADDRINUSE);
  EXPECT_EQ(errno_of(rdma_listen(first.get(), 0)), 0);
  EXPECT_EQ(errno_of(rdma_listen(second.get(), 0)), EADDRINUSE);
}

TEST(Bind, ToTheIpv6WildcardTakesThePortOfIpv4Too) {
  Channel channel;
  const auto dual = new_id(channel.get());
  ASSERT_EQ(bind_errno(dual, kIpv6Any), 0);
  const auto second = new_id(channel.get());
  EXPECT_EQ(bind_errno(second, kIpv4Any, source_port(*dual)), EADDRINUSE);
  EXPECT_EQ(bind_errno(second, kIpv4Loopback, source_port(*dual)), EADDRINUSE);
}

// RDMA_OPTION_ID_AFONLY.
TEST(Bind, ToTheIpv6WildcardAloneLeavesThePortOfIpv4) {
  Channel channel;
  int on = 1;
  const auto ipv6 = new_id(channel.get());
  ASSERT_EQ(
      errno_of(rdma_set_option(ipv6.get(), RDMA_OPTION_ID, RDMA_OPTION_ID_AFONLY, &on, sizeof on)),
      0);
  ASSERT_EQ(bind_errno(ipv6, kIpv6Any), 0);
  ASSERT_EQ(errno_of(rdma_listen(ipv6.get(), 0)), 0);
  const auto ipv4 = new_id(channel.get());
  EXPECT_EQ(bind_errno(ipv4, kIpv4Any, source_port(*ipv6)), 0);
}

TEST(Bind, OfBadAddressesIsRefused) {
  Channel channel;
  const auto id = new_id(channel.get());
  EXPECT_EQ(errno_of(rdma_bind_addr(id.get(), nullptr)), EINVAL);
  sockaddr_storage other{};
  for (const int family : {AF_UNSPEC, AF_UNIX, AF_IB}) {
    other.ss_family = static_cast<sa_family_t>(family);
    EXPECT_EQ(errno_of(rdma_bind_addr(id.get(), reinterpret_cast<sockaddr*>(&other))), EINVAL);
  }
  EXPECT_EQ(bind_errno(id, kIpv4Loopback), 0);
}

TEST(Bind, OfTheIpoibPortSpaceIsRefused) {
  Channel channel;
  const auto id = new_id(channel.get(), RDMA_PS_IPOIB);
  EXPECT_EQ(bind_errno(id, kIpv4Loopback), EINVAL);
}

TEST(Listen, OfAnUnboundIdBindsItToTheWildcard) {
  Channel channel;
  const auto id = new_id(channel.get());
  ASSERT_EQ(errno_of(rdma_listen(id.get(), 0)), 0);
  EXPECT_EQ(id->verbs, nullptr);
  EXPECT_NE(source_port(*id), 0);
  EXPECT_EQ(Address::of(rdma_get_local_addr(id.get())).text(),
            Address(kIpv4Any, source_port(*id)).text());
}

TEST(Listen, TwiceIsRefused) {
  Channel channel;
  const auto id = listen_at(channel, kIpv4Loopback);
  EXPECT_EQ(errno_of(rdma_listen(id.get(), 0)), EINVAL);
}

TEST(Listen, OfAClientIsRefused) {
  Channel channel;
  const auto id = resolved_to(channel, Address(kIpv4Loopback, 1));
  EXPECT_EQ(errno_of(rdma_listen(id.get(), 0)), EINVAL);
}

// An id that is bound to a port, and a client that has asked for a connection there.
struct EarlyClient {
  EarlyClient() {
    EXPECT_EQ(errno_of(rdma_bind_addr(listener.get(), Address(kIpv4Loopback).get())), 0);
    client = resolved_to(connecting, Address(kIpv4Loopback, source_port(*listener)));
    rdma_conn_param wanted = parameters_with();
    EXPECT_EQ(errno_of(rdma_connect(client.get(), &wanted)), 0);
  }

  Channel listening;
  Channel connecting;
  Owned<rdma_cm_id> listener = new_id(listening.get());
  Owned<rdma_cm_id> client;
};

TEST(Listen, HearsARequestThatHasComeBefore) {
  constexpr auto kOnItsWay = std::chrono::milliseconds(10);
  constexpr int kAttempts = 20;  // this thread may be late
  bool hears = false;
  for (int attempt = 0; attempt < kAttempts && !hears; ++attempt) {
    EarlyClient two;
    const bool is_rejected = two.connecting.is_readable_within(kOnItsWay);
    ASSERT_EQ(errno_of(rdma_listen(two.listener.get(), 0)), 0);
    hears = !is_rejected && two.listening.is_readable_within(kOnItsWay);
    if (!hears) continue;
    const Owned<rdma_cm_id> server(two.listening.expect(RDMA_CM_EVENT_CONNECT_REQUEST).id);
    EXPECT_NE(server->verbs, nullptr);
  }
  EXPECT_TRUE(hears);
}

TEST(Bind, WithoutAListenerRejectsRequests) {
  constexpr int kInvalidService = 8;
  EarlyClient two;
  two.connecting.expect(RDMA_CM_EVENT_REJECTED, kInvalidService);
}

// RDMA_OPTION_ID_AFONLY.
TEST(Listen, AtTheIpv6WildcardAloneIsNotForIpv4) {
  Channel channel;
  int on = 1;
  const auto listener = new_id(channel.get());
  ASSERT_EQ(errno_of(rdma_set_option(listener.get(), RDMA_OPTION_ID, RDMA_OPTION_ID_AFONLY, &on,
                                     sizeof on)),
            0);
  ASSERT_EQ(bind_errno(listener, kIpv6Any), 0);
  ASSERT_EQ(errno_of(rdma_listen(listener.get(), 0)), 0);
  Channel connecting;
  rdma_conn_param wanted = parameters_with();
  const auto ipv4 = resolved_to(connecting, Address(kIpv4Loopback, source_port(*listener)));
  ASSERT_EQ(errno_of(rdma_connect(ipv4.get(), &wanted)), 0);
  connecting.expect(RDMA_CM_EVENT_REJECTED, 8);
  const auto ipv6 = resolved_to(connecting, Address(kIpv6Loopback, source_port(*listener)));
  ASSERT_EQ(errno_of(rdma_connect(ipv6.get(), &wanted)), 0);
  const Owned<rdma_cm_id> server(channel.expect(RDMA_CM_EVENT_CONNECT_REQUEST).id);
}

struct Places {
  const char* at;
  const char* to;
};
void PrintTo(const Places& places, std::ostream* out) {
  *out << places.at << " from " << places.to;
}

class ListenAt : public testing::TestWithParam<Places> {};

TEST_P(ListenAt, ReachesTheClientOfThatAddress) {
  PartiesSetup setup;
  setup.at = GetParam().at;
  setup.to = GetParam().to;
  Parties two(setup);
  two.ask();
  // The child has the address that was asked for, whatever the listener has.
  EXPECT_NE(two.server->verbs, nullptr);
  EXPECT_EQ(two.server->port_num, 1);
  const std::uint16_t port = source_port(*two.listener);
  EXPECT_EQ(Address::of(rdma_get_local_addr(two.server.get())).text(),
            Address(setup.to, port).text());
  EXPECT_EQ(Address::of(rdma_get_peer_addr(two.server.get())).text(),
            Address::of(rdma_get_local_addr(two.client.get())).text());
  two.establish();
  EXPECT_EQ(Address::of(rdma_get_peer_addr(two.client.get())).text(),
            Address(setup.to, port).text());
  Parties::expect_message(*two.client, *two.server, 'a');
  Parties::expect_message(*two.server, *two.client, 'b');
}

INSTANTIATE_TEST_SUITE_P(
    Places, ListenAt,
    testing::Values(Places{kIpv4Loopback, kIpv4Loopback}, Places{kIpv6Loopback, kIpv6Loopback},
                    Places{kIpv4Any, kIpv4Loopback}, Places{kIpv6Any, kIpv6Loopback},
                    Places{kIpv6Any, kIpv4Loopback}, Places{"127.0.0.5", "127.0.0.5"},
                    Places{kIpv4Any, "127.1.2.3"}));

}  // namespace
}  // namespace weft::rdmacm_conformance
