// SPDX-License-Identifier: BSD-2-Clause
// What does a new id have, and which devices are there? (rdma_create_id(3), rdma_get_devices(3))
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "support/parties.h"

namespace weft::rdmacm_conformance {
namespace {

TEST(Ids, OfEachPortSpaceBeginWithoutADevice) {
  Channel channel;
  int context = 0;
  const std::vector<std::pair<rdma_port_space, ibv_qp_type>> spaces = {{RDMA_PS_TCP, IBV_QPT_RC},
                                                                       {RDMA_PS_UDP, IBV_QPT_UD},
                                                                       {RDMA_PS_IB, IBV_QPT_RC},
                                                                       {RDMA_PS_IPOIB, IBV_QPT_UD}};
  for (const auto& [space, type] : spaces) {
    const auto id = new_id(channel.get(), space, &context);
    ASSERT_NE(id, nullptr);
    EXPECT_EQ(id->ps, space);
    EXPECT_EQ(id->qp_type, type);
    EXPECT_EQ(id->context, &context);
    EXPECT_EQ(id->channel, channel.get());
    EXPECT_EQ(id->verbs, nullptr);
    EXPECT_EQ(id->pd, nullptr);
    EXPECT_EQ(id->qp, nullptr);
    EXPECT_EQ(id->srq, nullptr);
    EXPECT_EQ(id->send_cq, nullptr);
    EXPECT_EQ(id->recv_cq, nullptr);
    EXPECT_EQ(id->event, nullptr);
    EXPECT_EQ(id->port_num, 0);
    EXPECT_EQ(source_port(*id), 0);
    EXPECT_EQ(destination_port(*id), 0);
  }
  EXPECT_FALSE(channel.is_readable());
}

TEST(Ids, WithoutAChannelGetOneOfTheirOwn) {
  const auto first = new_id(nullptr);
  const auto second = new_id(nullptr);
  ASSERT_NE(first->channel, nullptr);
  ASSERT_NE(second->channel, nullptr);
  EXPECT_NE(first->channel->fd, second->channel->fd);
}

TEST(Ids, OfAnUnknownPortSpaceAreRefused) {
  Channel channel;
  rdma_cm_id* id = nullptr;
  for (const int number : {0, 1, 0x0105, 0x01FF}) {
    rdma_port_space space{};
    static_assert(sizeof space == sizeof number);
    std::memcpy(&space, &number, sizeof space);
    EXPECT_EQ(errno_of(rdma_create_id(channel.get(), &id, nullptr, space)), EINVAL);
    EXPECT_EQ(id, nullptr);
  }
}

TEST(Devices, AreListedOnceAndKeepTheirContexts) {
  int count = 0;
  ibv_context** const first = rdma_get_devices(&count);
  ASSERT_NE(first, nullptr);
  EXPECT_EQ(count, 1);  // WEFT_IFACE names one interface
  EXPECT_NE(first[0], nullptr);
  EXPECT_EQ(first[count], nullptr);
  ibv_context** const second = rdma_get_devices(nullptr);
  ASSERT_NE(second, nullptr);
  EXPECT_EQ(first[0], second[0]);
  Channel channel;
  const auto id = new_id(channel.get());
  ASSERT_EQ(errno_of(rdma_bind_addr(id.get(), Address(kIpv4Loopback).get())), 0);
  EXPECT_EQ(id->verbs, first[0]);
  rdma_free_devices(first);
  rdma_free_devices(second);
  ibv_device_attr attributes{};
  EXPECT_EQ(ibv_query_device(id->verbs, &attributes), 0);
  // They fit into the 8 bits of a REQ.
  EXPECT_LT(attributes.max_qp_rd_atom, 256);
  EXPECT_LT(attributes.max_qp_init_rd_atom, 256);
}

TEST(Events, HaveTheNamesOfTheirConstants) {
  const std::vector<std::string> names = {
      "ADDR_RESOLVED",   "ADDR_ERROR",       "ROUTE_RESOLVED", "ROUTE_ERROR",
      "CONNECT_REQUEST", "CONNECT_RESPONSE", "CONNECT_ERROR",  "UNREACHABLE",
      "REJECTED",        "ESTABLISHED",      "DISCONNECTED",   "DEVICE_REMOVAL",
      "MULTICAST_JOIN",  "MULTICAST_ERROR",  "ADDR_CHANGE",    "TIMEWAIT_EXIT"};
  for (unsigned number = 0; number < names.size() + 2; ++number) {
    rdma_cm_event_type type{};
    static_assert(sizeof type == sizeof number);
    std::memcpy(&type, &number, sizeof type);
    const std::string expected =
        number < names.size() ? "RDMA_CM_EVENT_" + names[number] : "UNKNOWN EVENT";
    EXPECT_EQ(rdma_event_str(type), expected);
  }
}

}  // namespace
}  // namespace weft::rdmacm_conformance
