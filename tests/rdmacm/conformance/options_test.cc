// SPDX-License-Identifier: BSD-2-Clause
// Which options does an id have? (rdma_set_option(3))
#include <array>

#include "support/parties.h"

namespace weft::rdmacm_conformance {
namespace {

class Options : public testing::Test {
 protected:
  template <class Value>
  int set_errno(int level, int name, Value value, std::size_t length = sizeof(Value)) {
    return errno_of(rdma_set_option(id_.get(), level, name, &value, length));
  }

  Channel channel_;
  Owned<rdma_cm_id> id_ = new_id(channel_.get());
};

TEST_F(Options, OfTheIdHaveTheirSizes) {
  const std::uint8_t octet = 8;
  const int number = 1;
  EXPECT_EQ(set_errno(RDMA_OPTION_ID, RDMA_OPTION_ID_TOS, octet), 0);
  EXPECT_EQ(set_errno(RDMA_OPTION_ID, RDMA_OPTION_ID_TOS, number), EINVAL);
  EXPECT_EQ(set_errno(RDMA_OPTION_ID, RDMA_OPTION_ID_TOS, octet, 0), EINVAL);
  EXPECT_EQ(set_errno(RDMA_OPTION_ID, RDMA_OPTION_ID_ACK_TIMEOUT, octet), 0);
  EXPECT_EQ(set_errno(RDMA_OPTION_ID, RDMA_OPTION_ID_ACK_TIMEOUT, number), EINVAL);
  EXPECT_EQ(set_errno(RDMA_OPTION_ID, RDMA_OPTION_ID_REUSEADDR, number), 0);
  EXPECT_EQ(set_errno(RDMA_OPTION_ID, RDMA_OPTION_ID_REUSEADDR, octet), EINVAL);
  EXPECT_EQ(set_errno(RDMA_OPTION_ID, RDMA_OPTION_ID_AFONLY, number), 0);
  EXPECT_EQ(set_errno(RDMA_OPTION_ID, RDMA_OPTION_ID_AFONLY, octet), EINVAL);
  EXPECT_EQ(errno_of(rdma_set_option(id_.get(), RDMA_OPTION_ID, RDMA_OPTION_ID_TOS, nullptr, 1)),
            EINVAL);
}

TEST_F(Options, ThatAreUnknownAreRefused) {
  EXPECT_EQ(set_errno(RDMA_OPTION_ID, 4, 1), ENOSYS);
  EXPECT_EQ(set_errno(RDMA_OPTION_ID, -1, 1), ENOSYS);
  EXPECT_EQ(set_errno(RDMA_OPTION_IB, 2, 1), ENOSYS);
  EXPECT_EQ(set_errno(2, RDMA_OPTION_ID_TOS, std::uint8_t{1}), ENOSYS);
}

TEST_F(Options, OfTheAddressComeBeforeIt) {
  ASSERT_EQ(errno_of(rdma_bind_addr(id_.get(), Address(kIpv4Loopback).get())), 0);
  EXPECT_EQ(set_errno(RDMA_OPTION_ID, RDMA_OPTION_ID_REUSEADDR, 1), EINVAL);
  EXPECT_EQ(set_errno(RDMA_OPTION_ID, RDMA_OPTION_ID_AFONLY, 1), EINVAL);
  EXPECT_EQ(set_errno(RDMA_OPTION_ID, RDMA_OPTION_ID_TOS, std::uint8_t{8}), 0);
}

TEST_F(Options, ForTheAckTimeoutAreOfConnectionsAndHaveFiveBits) {
  EXPECT_EQ(set_errno(RDMA_OPTION_ID, RDMA_OPTION_ID_ACK_TIMEOUT, std::uint8_t{31}), 0);
  EXPECT_EQ(set_errno(RDMA_OPTION_ID, RDMA_OPTION_ID_ACK_TIMEOUT, std::uint8_t{32}), EINVAL);
  id_ = new_id(channel_.get(), RDMA_PS_UDP);
  EXPECT_EQ(set_errno(RDMA_OPTION_ID, RDMA_OPTION_ID_ACK_TIMEOUT, std::uint8_t{9}), EINVAL);
}

TEST(OptionsOf, BothEndsSetTrafficClassAndTimeoutOfTheirQueuePairs) {
  Parties two;
  std::uint8_t type_of_service = 0x60;
  std::uint8_t timeout = 10;
  ASSERT_EQ(errno_of(rdma_set_option(two.client.get(), RDMA_OPTION_ID, RDMA_OPTION_ID_TOS,
                                     &type_of_service, 1)),
            0);
  ASSERT_EQ(errno_of(rdma_set_option(two.client.get(), RDMA_OPTION_ID, RDMA_OPTION_ID_ACK_TIMEOUT,
                                     &timeout, 1)),
            0);
  two.ask();
  two.establish();
  for (const auto* each : {&two.client, &two.server}) {
    ibv_qp_attr attributes{};
    ibv_qp_init_attr initial{};
    ASSERT_EQ(ibv_query_qp((*each)->qp, &attributes, IBV_QP_AV | IBV_QP_TIMEOUT, &initial), 0);
    EXPECT_EQ(attributes.ah_attr.grh.traffic_class, type_of_service);
    EXPECT_EQ(attributes.timeout, timeout);
  }
  Parties::expect_message(*two.client, *two.server, 'a');
}

// With path records of its own a program does without rdma_resolve_route(3).
TEST_F(Options, ForThePathTakePathRecordsOnceTheAddressIsResolved) {
  std::array<ibv_path_data, 1> paths{};
  paths[0].flags = IBV_PATH_FLAG_GMP | IBV_PATH_FLAG_PRIMARY | IBV_PATH_FLAG_BIDIRECTIONAL;
  const auto set = [&](std::size_t length) {
    return errno_of(
        rdma_set_option(id_.get(), RDMA_OPTION_IB, RDMA_OPTION_IB_PATH, paths.data(), length));
  };
  EXPECT_EQ(set(sizeof paths), EINVAL);  // there is no address
  Address to(kIpv4Loopback, 1);
  ASSERT_EQ(errno_of(rdma_resolve_addr(id_.get(), nullptr, to.get(), 1000)), 0);
  channel_.expect(RDMA_CM_EVENT_ADDR_RESOLVED);
  EXPECT_EQ(set(sizeof paths - 1), EINVAL);
  EXPECT_EQ(set(0), EINVAL);
  EXPECT_EQ(set(sizeof paths), 0);
  channel_.expect(RDMA_CM_EVENT_ROUTE_RESOLVED);
  EXPECT_EQ(id_->route.num_paths, 1);
  rdma_conn_param wanted = parameters_with();
  EXPECT_EQ(errno_of(rdma_connect(id_.get(), &wanted)), 0);
}

}  // namespace
}  // namespace weft::rdmacm_conformance
