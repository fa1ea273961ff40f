// SPDX-License-Identifier: BSD-2-Clause
// How does a program connect queue pairs of its own? (rdma_init_qp_attr(3), rdma_establish(3))
#include "support/parties.h"

namespace weft::rdmacm_conformance {
namespace {

PartiesSetup without_pairs(rdma_port_space ps = RDMA_PS_TCP) {
  PartiesSetup setup;
  setup.have_pairs = false;
  setup.ps = ps;
  return setup;
}

// A queue pair that no id knows of.
struct OwnPair {
  explicit OwnPair(const rdma_cm_id& id) : queue(ibv_create_cq(id.verbs, 16, nullptr, nullptr, 0)) {
    ibv_qp_init_attr setup = pair_setup(IBV_QPT_RC);
    setup.send_cq = setup.recv_cq = queue.get();
    pair.reset(ibv_create_qp(id.pd, &setup));
    EXPECT_NE(pair, nullptr);
  }
  Owned<ibv_cq> queue;
  Owned<ibv_qp> pair;
};

int attributes_errno(rdma_cm_id& id, ibv_qp_state state, ibv_qp_attr& attributes, int& mask) {
  attributes = {};
  attributes.qp_state = state;
  mask = 0;
  return errno_of(rdma_init_qp_attr(&id, &attributes, &mask));
}

// Takes the step that the id says.
void move(rdma_cm_id& id, ibv_qp* pair, ibv_qp_state state) {
  ibv_qp_attr attributes{};
  int mask = 0;
  ASSERT_EQ(attributes_errno(id, state, attributes, mask), 0);
  ASSERT_EQ(ibv_modify_qp(pair, &attributes, mask), 0);
}

rdma_conn_param parameters_of(const OwnPair& own) {
  rdma_conn_param parameters = parameters_with();
  parameters.qp_num = own.pair->qp_num;
  return parameters;
}

constexpr int kToInit = IBV_QP_STATE | IBV_QP_ACCESS_FLAGS | IBV_QP_PKEY_INDEX | IBV_QP_PORT;
constexpr int kToReceive = IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
                           IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
constexpr int kToSend = IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
                        IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC;

TEST(OwnPairs, ConnectWithTheAttributesOfTheirIds) {
  Parties two(without_pairs());
  const OwnPair client(*two.client);
  rdma_conn_param asked = parameters_of(client);
  asked.srq = 1;
  two.ask(asked);
  EXPECT_EQ(two.request.conn.qp_num, client.pair->qp_num);
  EXPECT_EQ(two.request.conn.srq, 1);
  const OwnPair server(*two.server);
  for (const ibv_qp_state state : {IBV_QPS_INIT, IBV_QPS_RTR, IBV_QPS_RTS}) {
    move(*two.server, server.pair.get(), state);
  }
  rdma_conn_param accepted = parameters_of(server);
  ASSERT_EQ(errno_of(rdma_accept(two.server.get(), &accepted)), 0);
  const Event answer = two.connecting.expect(RDMA_CM_EVENT_CONNECT_RESPONSE);
  EXPECT_EQ(answer.id, two.client.get());
  EXPECT_EQ(answer.conn.qp_num, server.pair->qp_num);
  EXPECT_EQ(answer.data, padded("", 196));
  for (const ibv_qp_state state : {IBV_QPS_INIT, IBV_QPS_RTR, IBV_QPS_RTS}) {
    move(*two.client, client.pair.get(), state);
  }
  EXPECT_FALSE(two.listening.is_readable());
  ASSERT_EQ(errno_of(rdma_establish(two.client.get())), 0);
  EXPECT_EQ(two.listening.expect(RDMA_CM_EVENT_ESTABLISHED).id, two.server.get());
  EXPECT_FALSE(two.connecting.is_readable());  // the caller knows
  // A message without bytes.
  ibv_recv_wr receive{};
  ibv_recv_wr* bad_receive = nullptr;
  ASSERT_EQ(ibv_post_recv(server.pair.get(), &receive, &bad_receive), 0);
  ibv_send_wr send{};
  send.opcode = IBV_WR_SEND;
  ibv_send_wr* bad_send = nullptr;
  ASSERT_EQ(ibv_post_send(client.pair.get(), &send, &bad_send), 0);
  EXPECT_EQ(next_completion(*client.queue).status, IBV_WC_SUCCESS);
  EXPECT_EQ(next_completion(*server.queue).status, IBV_WC_SUCCESS);
}

TEST(OwnPairs, HaveAttributesOfEachStep) {
  Parties two(without_pairs());
  rdma_conn_param asked = parameters_with();
  asked.qp_num = 4711;
  asked.responder_resources = 5;
  asked.initiator_depth = 3;
  asked.retry_count = 4;
  asked.rnr_retry_count = 2;
  two.ask(asked);
  ibv_qp_attr attributes{};
  int mask = 0;
  ASSERT_EQ(attributes_errno(*two.server, IBV_QPS_INIT, attributes, mask), 0);
  EXPECT_EQ(mask, kToInit);
  EXPECT_EQ(attributes.qp_state, IBV_QPS_INIT);
  EXPECT_EQ(attributes.port_num, 1);
  EXPECT_EQ(attributes.pkey_index, 0);
  EXPECT_NE(attributes.qp_access_flags & IBV_ACCESS_REMOTE_WRITE, 0U);
  EXPECT_NE(attributes.qp_access_flags & IBV_ACCESS_REMOTE_READ, 0U);
  ASSERT_EQ(attributes_errno(*two.server, IBV_QPS_RTR, attributes, mask), 0);
  EXPECT_EQ(mask, kToReceive);
  EXPECT_EQ(attributes.qp_state, IBV_QPS_RTR);
  EXPECT_EQ(attributes.dest_qp_num, 4711U);
  EXPECT_EQ(attributes.max_dest_rd_atomic, 3);
  EXPECT_EQ(attributes.min_rnr_timer, 0);
  EXPECT_EQ(attributes.ah_attr.is_global, 1);
  EXPECT_EQ(attributes.ah_attr.port_num, 1);
  ibv_gid own{};
  ASSERT_EQ(ibv_query_gid(two.server->verbs, 1, attributes.ah_attr.grh.sgid_index, &own), 0);
  EXPECT_EQ(own.global.interface_id, two.server->route.addr.addr.ibaddr.sgid.global.interface_id);
  ASSERT_EQ(attributes_errno(*two.server, IBV_QPS_RTS, attributes, mask), 0);
  EXPECT_EQ(mask, kToSend);
  EXPECT_EQ(attributes.qp_state, IBV_QPS_RTS);
  EXPECT_EQ(attributes.max_rd_atomic, 5);
  EXPECT_EQ(attributes.retry_cnt, 4);
  EXPECT_EQ(attributes.rnr_retry, 2);
  EXPECT_NE(attributes.timeout, 0);
}

TEST(OwnPairs, HaveTheTimeoutThatTheProgramHasSet) {
  Parties two(without_pairs());
  std::uint8_t timeout = 9;
  ASSERT_EQ(errno_of(rdma_set_option(two.client.get(), RDMA_OPTION_ID, RDMA_OPTION_ID_ACK_TIMEOUT,
                                     &timeout, sizeof timeout)),
            0);
  two.ask();
  two.establish();
  ibv_qp_attr attributes{};
  int mask = 0;
  ASSERT_EQ(attributes_errno(*two.client, IBV_QPS_RTS, attributes, mask), 0);
  EXPECT_EQ(attributes.timeout, 9);
}

TEST(OwnPairs, HaveAttributesOfInitOnceTheDeviceIsKnown) {
  Channel channel;
  const auto id = new_id(channel.get());
  ibv_qp_attr attributes{};
  int mask = 0;
  EXPECT_EQ(attributes_errno(*id, IBV_QPS_INIT, attributes, mask), EINVAL);
  ASSERT_EQ(errno_of(rdma_bind_addr(id.get(), Address(kIpv4Loopback).get())), 0);
  EXPECT_EQ(attributes_errno(*id, IBV_QPS_INIT, attributes, mask), 0);
  EXPECT_EQ(mask, kToInit);
  EXPECT_EQ(attributes_errno(*id, IBV_QPS_RTR, attributes, mask), EINVAL);
  EXPECT_EQ(attributes_errno(*id, IBV_QPS_RTS, attributes, mask), EINVAL);
  EXPECT_EQ(attributes_errno(*id, IBV_QPS_SQD, attributes, mask), EINVAL);
}

TEST(OwnPairs, OfDatagramsHaveTheQueueKey) {
  Channel channel;
  const auto id = resolved_to(channel, Address(kIpv4Loopback, 1), RDMA_PS_UDP);
  ibv_qp_attr attributes{};
  int mask = 0;
  ASSERT_EQ(attributes_errno(*id, IBV_QPS_INIT, attributes, mask), 0);
  EXPECT_EQ(mask, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY);
  EXPECT_EQ(attributes.qkey, 0x01234567U);
}

TEST(Establish, IsOfAReplyThatTheProgramAnswers) {
  Parties two(without_pairs());
  EXPECT_EQ(errno_of(rdma_establish(two.client.get())), EINVAL);
  two.ask();
  EXPECT_EQ(errno_of(rdma_establish(two.client.get())), EINVAL);
  EXPECT_EQ(errno_of(rdma_establish(two.server.get())), EINVAL);
  two.establish();
  EXPECT_EQ(errno_of(rdma_establish(two.client.get())), EINVAL);
}

TEST(Establish, OfAnIdWithAQueuePairIsRefused) {
  Parties two;
  two.ask();
  EXPECT_EQ(errno_of(rdma_establish(two.client.get())), EINVAL);
  two.establish();
  EXPECT_EQ(errno_of(rdma_establish(two.client.get())), EINVAL);
}

// The first message stands for an RTU that is lost (iSER's target calls it).
TEST(Notify, OfAnEstablishedConnectionMovesTheServer) {
  Parties two(without_pairs());
  two.ask();
  rdma_conn_param accepted = parameters_with();
  ASSERT_EQ(errno_of(rdma_accept(two.server.get(), &accepted)), 0);
  two.connecting.expect(RDMA_CM_EVENT_CONNECT_RESPONSE);
  EXPECT_FALSE(two.listening.is_readable());
  ASSERT_EQ(errno_of(rdma_notify(two.server.get(), IBV_EVENT_COMM_EST)), 0);
  EXPECT_EQ(two.listening.expect(RDMA_CM_EVENT_ESTABLISHED).id, two.server.get());
  EXPECT_EQ(errno_of(rdma_notify(two.server.get(), IBV_EVENT_COMM_EST)), EISCONN);
  // The RTU that comes after it is no second event.
  ASSERT_EQ(errno_of(rdma_establish(two.client.get())), 0);
  ASSERT_EQ(errno_of(rdma_disconnect(two.client.get())), 0);
  two.listening.expect(RDMA_CM_EVENT_DISCONNECTED);
}

TEST(Notify, OfAnIdThatAwaitsNoConnectionIsRefused) {
  Parties two(without_pairs());
  EXPECT_EQ(errno_of(rdma_notify(two.listener.get(), IBV_EVENT_COMM_EST)), EINVAL);
  EXPECT_EQ(errno_of(rdma_notify(two.client.get(), IBV_EVENT_COMM_EST)), EINVAL);
  two.ask();
  EXPECT_EQ(errno_of(rdma_notify(two.server.get(), IBV_EVENT_COMM_EST)), EINVAL);
  EXPECT_EQ(errno_of(rdma_notify(two.server.get(), IBV_EVENT_SQ_DRAINED)), EINVAL);
}

}  // namespace
}  // namespace weft::rdmacm_conformance
