// SPDX-License-Identifier: BSD-2-Clause
// How does a client find its device, its source and its route? (rdma_resolve_addr(3),
// rdma_resolve_route(3))
#include <cstring>
#include <string_view>

#include "support/parties.h"

namespace weft::rdmacm_conformance {
namespace {

constexpr int kPatienceMs = 2000;
constexpr std::uint16_t kSomePort = 18515;

int resolve_errno(const Owned<rdma_cm_id>& id, const char* from, const char* to,
                  std::uint16_t from_port = 0) {
  Address source(from != nullptr ? from : kIpv4Any, from_port);
  Address destination(to, kSomePort);
  return errno_of(rdma_resolve_addr(id.get(), from != nullptr ? source.get() : nullptr,
                                    destination.get(), kPatienceMs));
}

class Resolve : public testing::TestWithParam<const char*> {
 protected:
  Channel channel_;
};

TEST_P(Resolve, BindsTheDeviceAndSetsBothAddresses) {
  const auto id = new_id(channel_.get());
  ASSERT_EQ(resolve_errno(id, nullptr, GetParam()), 0);
  const Event event = channel_.expect(RDMA_CM_EVENT_ADDR_RESOLVED);
  EXPECT_EQ(event.id, id.get());
  EXPECT_EQ(event.listen_id, nullptr);
  EXPECT_NE(id->verbs, nullptr);
  EXPECT_NE(id->pd, nullptr);
  EXPECT_EQ(id->port_num, 1);
  EXPECT_NE(source_port(*id), 0);
  EXPECT_EQ(destination_port(*id), kSomePort);
  EXPECT_EQ(Address::of(rdma_get_peer_addr(id.get())).text(),
            Address(GetParam(), kSomePort).text());
  EXPECT_EQ(Address::of(rdma_get_local_addr(id.get())).text(),
            Address(GetParam(), source_port(*id)).text());
}

TEST_P(Resolve, OfTheRouteYieldsOnePath) {
  const auto id = resolved_to(channel_, Address(GetParam(), kSomePort));
  ASSERT_EQ(id->route.num_paths, 1);
  ASSERT_NE(id->route.path_rec, nullptr);
  const ibv_sa_path_rec& path = *id->route.path_rec;
  const auto& addresses = id->route.addr.addr.ibaddr;
  EXPECT_EQ(std::memcmp(&path.sgid, &addresses.sgid, sizeof path.sgid), 0);
  EXPECT_EQ(std::memcmp(&path.dgid, &addresses.dgid, sizeof path.dgid), 0);
  EXPECT_EQ(addresses.pkey, 0xFFFF);
  EXPECT_EQ(path.numb_path, 1);
  // The GIDs are those of the device.
  ibv_port_attr port{};
  ASSERT_EQ(ibv_query_port(id->verbs, id->port_num, &port), 0);
  bool is_known = false;
  for (int i = 0; i < port.gid_tbl_len; ++i) {
    ibv_gid gid{};
    if (ibv_query_gid(id->verbs, id->port_num, i, &gid) != 0) continue;
    is_known = is_known || std::memcmp(&gid, &addresses.sgid, sizeof gid) == 0;
  }
  EXPECT_TRUE(is_known);
}

TEST_P(Resolve, WithASourceBindsTheIdToIt) {
  const auto id = new_id(channel_.get());
  ASSERT_EQ(resolve_errno(id, GetParam(), GetParam()), 0);
  channel_.expect(RDMA_CM_EVENT_ADDR_RESOLVED);
  EXPECT_EQ(Address::of(rdma_get_local_addr(id.get())).text(),
            Address(GetParam(), source_port(*id)).text());
}

TEST_P(Resolve, WithASourcePortBindsTheIdToIt) {
  const std::uint16_t port = free_port();
  const auto id = new_id(channel_.get());
  ASSERT_EQ(resolve_errno(id, GetParam(), GetParam(), port), 0);
  channel_.expect(RDMA_CM_EVENT_ADDR_RESOLVED);
  EXPECT_EQ(source_port(*id), port);
  const auto second = new_id(channel_.get());
  EXPECT_EQ(errno_of(rdma_bind_addr(second.get(), Address(GetParam(), port).get())), EADDRINUSE);
}

TEST_P(Resolve, OfABoundIdKeepsItsAddress) {
  const auto id = new_id(channel_.get());
  ASSERT_EQ(errno_of(rdma_bind_addr(id.get(), Address(GetParam()).get())), 0);
  const std::uint16_t port = source_port(*id);
  const ibv_context* const verbs = id->verbs;
  ASSERT_EQ(resolve_errno(id, nullptr, GetParam()), 0);
  channel_.expect(RDMA_CM_EVENT_ADDR_RESOLVED);
  EXPECT_EQ(source_port(*id), port);
  EXPECT_EQ(id->verbs, verbs);
}

TEST_P(Resolve, OfAnIdOfTheWildcardKeepsItsPort) {
  const auto id = new_id(channel_.get());
  const bool is_ipv4 = std::string_view(GetParam()) == kIpv4Loopback;
  ASSERT_EQ(errno_of(rdma_bind_addr(id.get(), Address(is_ipv4 ? kIpv4Any : kIpv6Any).get())), 0);
  const std::uint16_t port = source_port(*id);
  EXPECT_EQ(id->verbs, nullptr);
  ASSERT_EQ(resolve_errno(id, nullptr, GetParam()), 0);
  channel_.expect(RDMA_CM_EVENT_ADDR_RESOLVED);
  EXPECT_NE(id->verbs, nullptr);
  EXPECT_EQ(Address::of(rdma_get_local_addr(id.get())).text(), Address(GetParam(), port).text());
}

INSTANTIATE_TEST_SUITE_P(Families, Resolve, testing::Values(kIpv4Loopback, kIpv6Loopback));

// As with sockets: the unspecified address is this host.
TEST(ResolveAddress, OfTheWildcardReachesThisHost) {
  Channel channel;
  const auto id = new_id(channel.get());
  ASSERT_EQ(resolve_errno(id, nullptr, kIpv4Any), 0);
  channel.expect(RDMA_CM_EVENT_ADDR_RESOLVED);
  EXPECT_NE(id->verbs, nullptr);
  EXPECT_EQ(Address::of(rdma_get_peer_addr(id.get())).text(),
            Address(kIpv4Loopback, kSomePort).text());
}

// WEFT_IFACE names the loopback, so that no device leads there.
TEST(ResolveAddress, ThatNoDeviceLeadsToIsAnErrorEvent) {
  Channel channel;
  for (const char* const host : {kForeignIpv4, kForeignIpv6}) {
    const auto id = new_id(channel.get());
    ASSERT_EQ(resolve_errno(id, nullptr, host), 0);
    const Event event = channel.next();
    EXPECT_EQ(event.type, RDMA_CM_EVENT_ADDR_ERROR);
    EXPECT_EQ(event.id, id.get());
    const bool is_usual =
        event.status == -ENODEV || event.status == -ENETUNREACH || event.status == -EHOSTUNREACH;
    EXPECT_TRUE(is_usual) << event.status;
    EXPECT_EQ(id->verbs, nullptr);
    // The id can try again.
    ASSERT_EQ(resolve_errno(id, nullptr, kIpv4Loopback), 0);
    channel.expect(RDMA_CM_EVENT_ADDR_RESOLVED);
  }
}

// An address of no family, as in memory that a program has cleared.
TEST(ResolveAddress, FromAnEmptyAddressChoosesTheSource) {
  Channel channel;
  const auto id = new_id(channel.get());
  sockaddr_storage empty{};
  Address to(kIpv4Loopback, kSomePort);
  ASSERT_EQ(errno_of(rdma_resolve_addr(id.get(), reinterpret_cast<sockaddr*>(&empty), to.get(),
                                       kPatienceMs)),
            0);
  channel.expect(RDMA_CM_EVENT_ADDR_RESOLVED);
  EXPECT_EQ(Address::of(rdma_get_local_addr(id.get())).text(),
            Address(kIpv4Loopback, source_port(*id)).text());
}

TEST(ResolveAddress, FromAnAddressThatNoHostHasIsRefused) {
  Channel channel;
  const auto id = new_id(channel.get());
  EXPECT_EQ(resolve_errno(id, kForeignIpv4, kIpv4Loopback), EADDRNOTAVAIL);
  EXPECT_FALSE(channel.is_readable());
}

TEST(ResolveAddress, WithoutADestinationOrOfOtherFamiliesIsRefused) {
  Channel channel;
  const auto id = new_id(channel.get());
  EXPECT_EQ(errno_of(rdma_resolve_addr(id.get(), nullptr, nullptr, kPatienceMs)), EINVAL);
  EXPECT_EQ(resolve_errno(id, kIpv6Loopback, kIpv4Loopback), EINVAL);
  sockaddr_storage other{};
  for (const int family : {AF_UNSPEC, AF_UNIX, AF_IB}) {
    other.ss_family = static_cast<sa_family_t>(family);
    auto* const address = reinterpret_cast<sockaddr*>(&other);
    EXPECT_EQ(errno_of(rdma_resolve_addr(id.get(), nullptr, address, kPatienceMs)), EINVAL);
  }
  EXPECT_FALSE(channel.is_readable());
}

TEST(ResolveAddress, TwiceIsRefused) {
  Channel channel;
  const auto id = new_id(channel.get());
  ASSERT_EQ(resolve_errno(id, nullptr, kIpv4Loopback), 0);
  channel.expect(RDMA_CM_EVENT_ADDR_RESOLVED);
  EXPECT_EQ(resolve_errno(id, nullptr, kIpv4Loopback), EINVAL);
  EXPECT_FALSE(channel.is_readable());
}

TEST(ResolveAddress, OfAListenerIsRefused) {
  Channel channel;
  const auto id = listen_at(channel, kIpv4Loopback);
  EXPECT_EQ(resolve_errno(id, nullptr, kIpv4Loopback), EINVAL);
}

TEST(ResolveRoute, BeforeTheAddressIsRefused) {
  Channel channel;
  const auto id = new_id(channel.get());
  EXPECT_EQ(errno_of(rdma_resolve_route(id.get(), kPatienceMs)), EINVAL);
  ASSERT_EQ(errno_of(rdma_bind_addr(id.get(), Address(kIpv4Loopback).get())), 0);
  EXPECT_EQ(errno_of(rdma_resolve_route(id.get(), kPatienceMs)), EINVAL);
}

TEST(ResolveRoute, TwiceIsRefused) {
  Channel channel;
  const auto id = resolved_to(channel, Address(kIpv4Loopback, kSomePort));
  EXPECT_EQ(errno_of(rdma_resolve_route(id.get(), kPatienceMs)), EINVAL);
  EXPECT_FALSE(channel.is_readable());
}

}  // namespace
}  // namespace weft::rdmacm_conformance
