// SPDX-License-Identifier: BSD-2-Clause
// Which addresses do names have? (rdma_getaddrinfo(3))
#include <netdb.h>

#include <string>

#include "support/parties.h"

namespace weft::rdmacm_conformance {
namespace {

// 0, -1 with errno, or EAI_*.
int look_up(const char* node, const char* service, const rdma_addrinfo* hints,
            Owned<rdma_addrinfo>& info) {
  rdma_addrinfo* found = nullptr;
  const int result = rdma_getaddrinfo(node, service, const_cast<rdma_addrinfo*>(hints), &found);
  info.reset(found);
  return result;
}

rdma_addrinfo hints_with(int flags, int port_space = 0) {
  rdma_addrinfo hints{};
  hints.ai_flags = flags;
  hints.ai_port_space = port_space;
  return hints;
}

TEST(AddressInfo, OfAServerIsItsDestinationAndOurSource) {
  Owned<rdma_addrinfo> info;
  const rdma_addrinfo hints = hints_with(RAI_NUMERICHOST, RDMA_PS_TCP);
  ASSERT_EQ(look_up("127.0.0.1", "7471", &hints, info), 0);
  EXPECT_EQ(info->ai_family, AF_INET);
  EXPECT_EQ(info->ai_port_space, RDMA_PS_TCP);
  EXPECT_EQ(info->ai_qp_type, IBV_QPT_RC);
  ASSERT_NE(info->ai_dst_addr, nullptr);
  EXPECT_EQ(info->ai_dst_len, sizeof(sockaddr_in));
  EXPECT_EQ(Address::of(info->ai_dst_addr).text(), "127.0.0.1 7471");
  ASSERT_NE(info->ai_src_addr, nullptr);
  EXPECT_EQ(Address::of(info->ai_src_addr).text(), "127.0.0.1 0");
  EXPECT_EQ(info->ai_next, nullptr);
  EXPECT_EQ(info->ai_route_len, 0U);
  EXPECT_EQ(info->ai_connect_len, 0U);
}

TEST(AddressInfo, OfIpv6IsOfThatFamily) {
  Owned<rdma_addrinfo> info;
  ASSERT_EQ(look_up("::1", "7471", nullptr, info), 0);
  EXPECT_EQ(info->ai_family, AF_INET6);
  EXPECT_EQ(Address::of(info->ai_dst_addr).text(), "::1 7471");
}

TEST(AddressInfo, OfAListenerIsASource) {
  Owned<rdma_addrinfo> info;
  const rdma_addrinfo hints = hints_with(RAI_PASSIVE, RDMA_PS_TCP);
  ASSERT_EQ(look_up("127.0.0.1", "7471", &hints, info), 0);
  EXPECT_EQ(info->ai_dst_addr, nullptr);
  EXPECT_EQ(info->ai_dst_len, 0U);
  ASSERT_NE(info->ai_src_addr, nullptr);
  EXPECT_EQ(Address::of(info->ai_src_addr).text(), "127.0.0.1 7471");
  EXPECT_NE(info->ai_flags & RAI_PASSIVE, 0);
}

TEST(AddressInfo, OfAListenerWithoutANodeIsTheWildcard) {
  Owned<rdma_addrinfo> info;
  const rdma_addrinfo hints = hints_with(RAI_PASSIVE, RDMA_PS_TCP);
  ASSERT_EQ(look_up(nullptr, "7471", &hints, info), 0);
  ASSERT_NE(info->ai_src_addr, nullptr);
  const std::string text = Address::of(info->ai_src_addr).text();
  EXPECT_TRUE(text == "0.0.0.0 7471" || text == ":: 7471") << text;
}

TEST(AddressInfo, WithoutARouteHasNoSource) {
  Owned<rdma_addrinfo> info;
  const rdma_addrinfo hints = hints_with(RAI_NUMERICHOST | RAI_NOROUTE);
  ASSERT_EQ(look_up("127.0.0.1", "7471", &hints, info), 0);
  EXPECT_EQ(info->ai_src_addr, nullptr);
  EXPECT_EQ(info->ai_src_len, 0U);
}

TEST(AddressInfo, KeepsTheSourceOfTheHints) {
  Owned<rdma_addrinfo> info;
  Address source("127.0.0.9", 99);
  rdma_addrinfo hints = hints_with(RAI_NUMERICHOST);
  hints.ai_src_addr = source.get();
  hints.ai_src_len = source.length();
  ASSERT_EQ(look_up("127.0.0.1", "7471", &hints, info), 0);
  ASSERT_NE(info->ai_src_addr, nullptr);
  EXPECT_NE(info->ai_src_addr, source.get());
  EXPECT_EQ(Address::of(info->ai_src_addr).text(), source.text());
}

TEST(AddressInfo, OfHintsAloneHasTheirAddresses) {
  Owned<rdma_addrinfo> info;
  Address destination("127.0.0.1", 7471);
  rdma_addrinfo hints = hints_with(0);
  hints.ai_dst_addr = destination.get();
  hints.ai_dst_len = destination.length();
  ASSERT_EQ(look_up(nullptr, nullptr, &hints, info), 0);
  ASSERT_NE(info->ai_dst_addr, nullptr);
  EXPECT_EQ(Address::of(info->ai_dst_addr).text(), destination.text());
}

struct Kind {
  int space;
  int type;
  int expected_space;
  int expected_type;
};

class AddressInfoKind : public testing::TestWithParam<Kind> {};

TEST_P(AddressInfoKind, FollowsTheHints) {
  Owned<rdma_addrinfo> info;
  rdma_addrinfo hints = hints_with(RAI_NUMERICHOST, GetParam().space);
  hints.ai_qp_type = GetParam().type;
  ASSERT_EQ(look_up("127.0.0.1", "7471", &hints, info), 0);
  EXPECT_EQ(info->ai_port_space, GetParam().expected_space);
  EXPECT_EQ(info->ai_qp_type, GetParam().expected_type);
}

INSTANTIATE_TEST_SUITE_P(Kinds, AddressInfoKind,
                         testing::Values(Kind{0, 0, RDMA_PS_TCP, IBV_QPT_RC},
                                         Kind{RDMA_PS_TCP, 0, RDMA_PS_TCP, IBV_QPT_RC},
                                         Kind{RDMA_PS_UDP, 0, RDMA_PS_UDP, IBV_QPT_UD},
                                         Kind{0, IBV_QPT_UD, RDMA_PS_UDP, IBV_QPT_UD},
                                         Kind{0, IBV_QPT_RC, RDMA_PS_TCP, IBV_QPT_RC},
                                         Kind{RDMA_PS_IB, IBV_QPT_XRC_SEND, RDMA_PS_IB,
                                              IBV_QPT_XRC_SEND}));

TEST(AddressInfo, OfNothingIsRefused) {
  Owned<rdma_addrinfo> info;
  errno = 0;
  EXPECT_EQ(look_up(nullptr, nullptr, nullptr, info), -1);
  EXPECT_EQ(errno, EINVAL);
  errno = 0;
  EXPECT_EQ(rdma_getaddrinfo("127.0.0.1", "7471", nullptr, nullptr), -1);
  EXPECT_EQ(errno, EINVAL);
}

// As they are, and not in errno.
TEST(AddressInfo, FailsWithTheNumbersOfGetaddrinfo) {
  Owned<rdma_addrinfo> info;
  const rdma_addrinfo hints = hints_with(RAI_NUMERICHOST);
  EXPECT_EQ(look_up("no number", "7471", &hints, info), EAI_NONAME);
  EXPECT_EQ(info, nullptr);
  rdma_addrinfo of_family = hints_with(RAI_NUMERICHOST | RAI_FAMILY);
  of_family.ai_family = AF_INET6;
  EXPECT_EQ(look_up("127.0.0.1", "7471", &of_family, info), EAI_ADDRFAMILY);
  of_family.ai_family = AF_INET;
  EXPECT_EQ(look_up("127.0.0.1", "7471", &of_family, info), 0);
}

// EAI_QPTYPE in the manual.
TEST(AddressInfo, OfAQueuePairThatItsPortSpaceHasNotIsRefused) {
  Owned<rdma_addrinfo> info;
  rdma_addrinfo hints = hints_with(RAI_NUMERICHOST, RDMA_PS_TCP);
  hints.ai_qp_type = IBV_QPT_UD;
  EXPECT_EQ(look_up("127.0.0.1", "7471", &hints, info), EAI_SOCKTYPE);
  hints.ai_port_space = RDMA_PS_UDP;
  hints.ai_qp_type = IBV_QPT_RC;
  EXPECT_EQ(look_up("127.0.0.1", "7471", &hints, info), EAI_SOCKTYPE);
}

}  // namespace
}  // namespace weft::rdmacm_conformance
