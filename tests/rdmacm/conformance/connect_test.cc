// SPDX-License-Identifier: BSD-2-Clause
// How does a connection come about, and what do both ends learn? (rdma_connect(3), rdma_accept(3))
#include <array>
#include <cstring>

#include "support/parties.h"

namespace weft::rdmacm_conformance {
namespace {

ibv_qp_attr attributes_of(const Owned<rdma_cm_id>& id) {
  constexpr int kAll = IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
                       IBV_QP_ACCESS_FLAGS | IBV_QP_MAX_QP_RD_ATOMIC | IBV_QP_MAX_DEST_RD_ATOMIC |
                       IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MIN_RNR_TIMER |
                       IBV_QP_RQ_PSN | IBV_QP_SQ_PSN;
  ibv_qp_attr attributes{};
  ibv_qp_init_attr initial{};
  EXPECT_EQ(ibv_query_qp(id->qp, &attributes, kAll, &initial), 0);
  return attributes;
}

ibv_device_attr device_of(const Owned<rdma_cm_id>& id) {
  ibv_device_attr attributes{};
  EXPECT_EQ(ibv_query_device(id->verbs, &attributes), 0);
  return attributes;
}

TEST(Connect, MovesMessagesBothWays) {
  Parties two;
  two.ask();
  two.establish();
  Parties::expect_message(*two.client, *two.server, 'a');
  Parties::expect_message(*two.server, *two.client, 'b');
}

TEST(Connect, GivesTheListenerANewIdLikeItself) {
  Parties two;
  int context = 0;
  two.listener->context = &context;
  two.ask();
  EXPECT_NE(two.server.get(), two.listener.get());
  EXPECT_EQ(two.server->channel, two.listening.get());
  EXPECT_EQ(two.server->context, &context);
  EXPECT_EQ(two.server->ps, RDMA_PS_TCP);
  EXPECT_EQ(two.server->qp_type, IBV_QPT_RC);
  EXPECT_EQ(two.server->event, nullptr);
  EXPECT_EQ(two.server->verbs, two.client->verbs);
  ASSERT_NE(two.server->pd, nullptr);
  EXPECT_EQ(source_port(*two.server), source_port(*two.listener));
  EXPECT_EQ(destination_port(*two.server), source_port(*two.client));
  EXPECT_EQ(two.server->route.num_paths, 1);
  const auto& of_client = two.client->route.addr.addr.ibaddr;
  const auto& of_server = two.server->route.addr.addr.ibaddr;
  EXPECT_EQ(std::memcmp(&of_server.sgid, &of_client.dgid, sizeof(ibv_gid)), 0);
  EXPECT_EQ(std::memcmp(&of_server.dgid, &of_client.sgid, sizeof(ibv_gid)), 0);
}

TEST(Connect, MovesTheQueuePairsOfBothEndsWithTheTermsOfBoth) {
  Parties two;
  rdma_conn_param asked = parameters_with();
  asked.retry_count = 5;
  asked.rnr_retry_count = 3;
  two.ask(asked);
  rdma_conn_param accepted = parameters_with();
  accepted.rnr_retry_count = 6;
  two.establish(accepted);
  const ibv_qp_attr client = attributes_of(two.client);
  const ibv_qp_attr server = attributes_of(two.server);
  EXPECT_EQ(client.qp_state, IBV_QPS_RTS);
  EXPECT_EQ(server.qp_state, IBV_QPS_RTS);
  EXPECT_EQ(client.dest_qp_num, two.server->qp->qp_num);
  EXPECT_EQ(server.dest_qp_num, two.client->qp->qp_num);
  EXPECT_EQ(client.rq_psn, server.sq_psn);
  EXPECT_EQ(server.rq_psn, client.sq_psn);
  EXPECT_EQ(client.path_mtu, server.path_mtu);
  EXPECT_EQ(client.ah_attr.is_global, 1);
  // The client's retries are of both; for RNR NAKs each says how often the other tries again.
  EXPECT_EQ(client.retry_cnt, 5);
  EXPECT_EQ(server.retry_cnt, 5);
  EXPECT_EQ(server.rnr_retry, 3);
  EXPECT_EQ(client.rnr_retry, 6);
  EXPECT_EQ(client.min_rnr_timer, 0);  // 655 ms
  EXPECT_EQ(server.min_rnr_timer, 0);
  EXPECT_NE(client.timeout, 0);
  EXPECT_NE(server.timeout, 0);
}

TEST(Connect, SwapsDepthsOnTheWay) {
  Parties two;
  rdma_conn_param asked = parameters_with();
  asked.responder_resources = 5;
  asked.initiator_depth = 3;
  asked.flow_control = 1;
  asked.retry_count = 6;
  asked.rnr_retry_count = 2;
  two.ask(asked);
  EXPECT_EQ(two.request.conn.initiator_depth, 5);
  EXPECT_EQ(two.request.conn.responder_resources, 3);
  EXPECT_EQ(two.request.conn.flow_control, 1);
  EXPECT_EQ(two.request.conn.retry_count, 6);
  EXPECT_EQ(two.request.conn.rnr_retry_count, 2);
  EXPECT_EQ(two.request.conn.srq, 0);
  EXPECT_EQ(two.request.conn.qp_num, two.client->qp->qp_num);
  rdma_conn_param accepted = parameters_with();
  accepted.responder_resources = 2;
  accepted.initiator_depth = 4;
  accepted.flow_control = 1;
  accepted.rnr_retry_count = 1;
  two.establish(accepted);
  EXPECT_EQ(two.answer.conn.initiator_depth, 2);
  EXPECT_EQ(two.answer.conn.responder_resources, 4);
  EXPECT_EQ(two.answer.conn.flow_control, 1);
  EXPECT_EQ(two.answer.conn.rnr_retry_count, 1);
  EXPECT_EQ(two.answer.conn.qp_num, two.server->qp->qp_num);
  EXPECT_EQ(attributes_of(two.client).max_rd_atomic, 2);
  EXPECT_EQ(attributes_of(two.client).max_dest_rd_atomic, 4);
  EXPECT_EQ(attributes_of(two.server).max_rd_atomic, 4);
  EXPECT_EQ(attributes_of(two.server).max_dest_rd_atomic, 2);
}

TEST(Connect, SaysThatAQueuePairReceivesFromASharedQueue) {
  Parties two;
  rdma_destroy_qp(two.client.get());
  ibv_srq_init_attr shared{nullptr, {8, 1, 0}};
  ASSERT_EQ(errno_of(rdma_create_srq(two.client.get(), nullptr, &shared)), 0);
  ibv_qp_init_attr setup = pair_setup(IBV_QPT_RC);
  ASSERT_EQ(errno_of(rdma_create_qp(two.client.get(), nullptr, &setup)), 0);
  two.ask();
  EXPECT_EQ(two.request.conn.srq, 1);
  two.establish();
  EXPECT_EQ(two.answer.conn.srq, 0);
  Parties::expect_message(*two.server, *two.client, 'a');
}

TEST(Connect, WithoutParametersTakesWhatTheDeviceHas) {
  Parties two;
  ASSERT_EQ(errno_of(rdma_connect(two.client.get(), nullptr)), 0);
  two.request = two.listening.expect(RDMA_CM_EVENT_CONNECT_REQUEST);
  two.server.reset(two.request.id);
  const ibv_device_attr device = device_of(two.client);
  EXPECT_EQ(two.request.conn.initiator_depth, device.max_qp_rd_atom);
  EXPECT_EQ(two.request.conn.responder_resources, device.max_qp_init_rd_atom);
  EXPECT_EQ(two.request.conn.retry_count, 7);
  EXPECT_EQ(two.request.conn.rnr_retry_count, 7);
  EXPECT_EQ(two.request.data, padded("", 56));
}

TEST(Connect, WithTheGreatestDepthsTakesThoseOfTheDevice) {
  Parties two;
  rdma_conn_param asked = parameters_with();
  asked.responder_resources = RDMA_MAX_RESP_RES;
  asked.initiator_depth = RDMA_MAX_INIT_DEPTH;
  two.ask(asked);
  const ibv_device_attr device = device_of(two.client);
  EXPECT_EQ(two.request.conn.initiator_depth, device.max_qp_rd_atom);
  EXPECT_EQ(two.request.conn.responder_resources, device.max_qp_init_rd_atom);
}

TEST(Connect, BeyondTheDepthsOfTheDeviceIsRefused) {
  Parties two;
  const ibv_device_attr device = device_of(two.client);
  rdma_conn_param asked = parameters_with();
  asked.responder_resources = static_cast<std::uint8_t>(device.max_qp_rd_atom + 1);
  EXPECT_EQ(errno_of(rdma_connect(two.client.get(), &asked)), EINVAL);
  asked = parameters_with();
  asked.initiator_depth = static_cast<std::uint8_t>(device.max_qp_init_rd_atom + 1);
  EXPECT_EQ(errno_of(rdma_connect(two.client.get(), &asked)), EINVAL);
  two.ask();  // the id goes on
}

TEST(Connect, LimitsRetriesToThreeBits) {
  Parties two;
  rdma_conn_param asked = parameters_with();
  asked.retry_count = asked.rnr_retry_count = 200;
  two.ask(asked);
  EXPECT_EQ(two.request.conn.retry_count, 7);
  EXPECT_EQ(two.request.conn.rnr_retry_count, 7);
}

TEST(Connect, WithoutResponderResourcesAllowsNoReads) {
  Parties two;
  rdma_conn_param none = parameters_with();
  none.responder_resources = none.initiator_depth = 0;
  two.ask(none);
  two.establish(none);
  for (const auto* each : {&two.client, &two.server}) {
    EXPECT_EQ(attributes_of(*each).qp_access_flags, unsigned{IBV_ACCESS_REMOTE_WRITE});
  }
}

TEST(Connect, WithResponderResourcesAllowsReads) {
  Parties two;
  two.ask();
  two.establish();
  std::array<char, 8> own{};
  std::array<char, 8> far{'f', 'a', 'r', '!'};
  const Owned<ibv_mr> local(rdma_reg_msgs(two.client.get(), own.data(), own.size()));
  const Owned<ibv_mr> remote(rdma_reg_read(two.server.get(), far.data(), far.size()));
  ASSERT_EQ(rdma_post_read(two.client.get(), nullptr, own.data(), own.size(), local.get(), 0,
                           reinterpret_cast<std::uint64_t>(far.data()), remote->rkey),
            0);
  EXPECT_EQ(next_completion(*two.client->send_cq).status, IBV_WC_SUCCESS);
  EXPECT_EQ(own, far);
}

TEST(Accept, WithoutParametersTakesTheDepthsThatWereAskedFor) {
  Parties two;
  rdma_conn_param asked = parameters_with();
  asked.responder_resources = 5;
  asked.initiator_depth = 3;
  two.ask(asked);
  ASSERT_EQ(errno_of(rdma_accept(two.server.get(), nullptr)), 0);
  const Event answer = two.connecting.expect(RDMA_CM_EVENT_ESTABLISHED);
  EXPECT_EQ(answer.conn.responder_resources, 5);
  EXPECT_EQ(answer.conn.initiator_depth, 3);
  EXPECT_EQ(answer.conn.rnr_retry_count, 7);
  EXPECT_EQ(answer.data, padded("", 196));
  EXPECT_EQ(attributes_of(two.client).max_rd_atomic, 3);
  EXPECT_EQ(attributes_of(two.server).max_dest_rd_atomic, 3);
}

TEST(Accept, WithTheGreatestDepthsTakesThoseThatWereAskedFor) {
  Parties two;
  rdma_conn_param asked = parameters_with();
  asked.responder_resources = 5;
  asked.initiator_depth = 3;
  two.ask(asked);
  rdma_conn_param accepted = parameters_with();
  accepted.responder_resources = RDMA_MAX_RESP_RES;
  accepted.initiator_depth = RDMA_MAX_INIT_DEPTH;
  two.establish(accepted);
  EXPECT_EQ(two.answer.conn.responder_resources, 5);
  EXPECT_EQ(two.answer.conn.initiator_depth, 3);
}

TEST(Accept, BeyondTheDepthsOfTheDeviceIsRefused) {
  Parties two;
  two.ask();
  rdma_conn_param accepted = parameters_with();
  accepted.responder_resources =
      static_cast<std::uint8_t>(device_of(two.server).max_qp_rd_atom + 1);
  EXPECT_EQ(errno_of(rdma_accept(two.server.get(), &accepted)), EINVAL);
  two.establish();
}

TEST(Accept, ReportsTheConnectionToTheServerWithoutData) {
  Parties two;
  two.ask();
  rdma_conn_param accepted = parameters_with("data");
  ASSERT_EQ(errno_of(rdma_accept(two.server.get(), &accepted)), 0);
  two.connecting.expect(RDMA_CM_EVENT_ESTABLISHED);
  const Event established = two.listening.expect(RDMA_CM_EVENT_ESTABLISHED);
  EXPECT_EQ(established.id, two.server.get());
  EXPECT_EQ(established.data, "");
}

TEST(Accept, OfAnIdThatIsOfNoRequestIsRefused) {
  Parties two;
  rdma_conn_param wanted = parameters_with();
  EXPECT_EQ(errno_of(rdma_accept(two.listener.get(), &wanted)), EINVAL);
  EXPECT_EQ(errno_of(rdma_accept(two.client.get(), &wanted)), EINVAL);
  two.ask();
  two.establish();
  EXPECT_EQ(errno_of(rdma_accept(two.server.get(), &wanted)), EINVAL);
  EXPECT_EQ(errno_of(rdma_accept(two.client.get(), &wanted)), EINVAL);
  Parties::expect_message(*two.client, *two.server, 'a');
}

TEST(Connect, InTheWrongStateIsRefused) {
  Channel channel;
  rdma_conn_param wanted = parameters_with();
  const auto id = new_id(channel.get());
  EXPECT_EQ(errno_of(rdma_connect(id.get(), &wanted)), EINVAL);
  ASSERT_EQ(errno_of(rdma_bind_addr(id.get(), Address(kIpv4Loopback).get())), 0);
  EXPECT_EQ(errno_of(rdma_connect(id.get(), &wanted)), EINVAL);
  Address to(kIpv4Loopback, 1);
  ASSERT_EQ(errno_of(rdma_resolve_addr(id.get(), nullptr, to.get(), 1000)), 0);
  channel.expect(RDMA_CM_EVENT_ADDR_RESOLVED);
  EXPECT_EQ(errno_of(rdma_connect(id.get(), &wanted)), EINVAL);
  EXPECT_FALSE(channel.is_readable());
  Parties two;
  EXPECT_EQ(errno_of(rdma_connect(two.listener.get(), &wanted)), EINVAL);
  two.ask();
  EXPECT_EQ(errno_of(rdma_connect(two.client.get(), &wanted)), EINVAL);
  EXPECT_EQ(errno_of(rdma_connect(two.server.get(), &wanted)), EINVAL);
  two.establish();
  EXPECT_EQ(errno_of(rdma_connect(two.client.get(), &wanted)), EINVAL);
}

TEST(Connect, WithNeitherAQueuePairNorParametersIsRefused) {
  PartiesSetup setup;
  setup.have_pairs = false;
  Parties two(setup);
  EXPECT_EQ(errno_of(rdma_connect(two.client.get(), nullptr)), EINVAL);
  two.ask();
  EXPECT_EQ(errno_of(rdma_accept(two.server.get(), nullptr)), EINVAL);
}

int end_pair(const Owned<rdma_cm_id>& id) {
  ibv_qp_attr attributes{};
  attributes.qp_state = IBV_QPS_ERR;
  return ibv_modify_qp(id->qp, &attributes, IBV_QP_STATE);
}

TEST(Connect, WhoseQueuePairCannotMoveFailsAtBothEnds) {
  Parties two;
  two.ask();
  ASSERT_EQ(end_pair(two.client), 0);
  ASSERT_EQ(errno_of(rdma_accept(two.server.get(), nullptr)), 0);
  const Event failed = two.connecting.next();
  EXPECT_EQ(failed.type, RDMA_CM_EVENT_CONNECT_ERROR);
  EXPECT_LT(failed.status, 0);
  EXPECT_EQ(failed.id, two.client.get());
  EXPECT_EQ(two.listening.expect(RDMA_CM_EVENT_REJECTED, 28).id, two.server.get());
}

TEST(Accept, WhoseQueuePairCannotMoveIsRefused) {
  Parties two;
  two.ask();
  ASSERT_EQ(end_pair(two.server), 0);
  EXPECT_EQ(errno_of(rdma_accept(two.server.get(), nullptr)), EINVAL);
  EXPECT_FALSE(two.connecting.is_readable());
  EXPECT_EQ(errno_of(rdma_reject(two.server.get(), nullptr, 0)), 0);
  two.connecting.expect(RDMA_CM_EVENT_REJECTED, 28);
}

TEST(PrivateData, OfTheGreatestLengthsArrive) {
  const std::string of_request(56, 'r');
  const std::string of_reply(196, 'p');
  Parties two;
  two.ask(parameters_with(of_request));
  EXPECT_EQ(two.request.data, of_request);
  two.establish(parameters_with(of_reply));
  EXPECT_EQ(two.answer.data, of_reply);
}

TEST(PrivateData, ArriveWithZerosBehind) {
  Parties two;
  two.ask(parameters_with("request"));
  EXPECT_EQ(two.request.data, padded("request", 56));
  two.establish(parameters_with("reply"));
  EXPECT_EQ(two.answer.data, padded("reply", 196));
}

TEST(PrivateData, OfARequestBeyondTheLimitAreRefused) {
  Parties two;
  const std::string too_long(57, 'r');
  rdma_conn_param wanted = parameters_with(too_long);
  EXPECT_EQ(errno_of(rdma_connect(two.client.get(), &wanted)), EINVAL);
  two.ask();  // the id goes on
}

TEST(PrivateData, OfAReplyBeyondTheLimitAreRefusedAndTheClientHears) {
  Parties two;
  two.ask();
  const std::string too_long(197, 'p');
  rdma_conn_param wanted = parameters_with(too_long);
  EXPECT_EQ(errno_of(rdma_accept(two.server.get(), &wanted)), EINVAL);
  two.server.reset();
  two.connecting.expect(RDMA_CM_EVENT_REJECTED, 28);
}

TEST(PrivateData, LiveInTheEventUntilItIsAcknowledged) {
  Parties two;
  rdma_conn_param wanted = parameters_with("first");
  ASSERT_EQ(errno_of(rdma_connect(two.client.get(), &wanted)), 0);
  Owned<rdma_cm_event> event = two.listening.take();
  ASSERT_NE(event, nullptr);
  two.server.reset(event->id);
  // A second request leaves the data of the first alone.
  Channel connecting;
  const auto other = resolved_to(connecting, Address(kIpv4Loopback, source_port(*two.listener)));
  rdma_conn_param others = parameters_with("other");
  others.qp_num = 1;
  ASSERT_EQ(errno_of(rdma_connect(other.get(), &others)), 0);
  const Event second = two.listening.expect(RDMA_CM_EVENT_CONNECT_REQUEST);
  const Owned<rdma_cm_id> end(second.id);
  EXPECT_EQ(second.data, padded("other", 56));
  EXPECT_EQ(Event(*event).data, padded("first", 56));
}

// Several clients of one listener are told apart.
TEST(Connect, OfSeveralClientsGivesEachItsServer) {
  Channel listening;
  const auto listener = listen_at(listening, kIpv4Loopback);
  constexpr std::size_t kClients = 5;
  Channel connecting;
  std::array<Owned<rdma_cm_id>, kClients> clients;
  std::array<Owned<rdma_cm_id>, kClients> servers;
  for (std::size_t i = 0; i < kClients; ++i) {
    clients[i] = resolved_to(connecting, Address(kIpv4Loopback, source_port(*listener)));
    ibv_qp_init_attr setup = pair_setup(IBV_QPT_RC);
    ASSERT_EQ(errno_of(rdma_create_qp(clients[i].get(), nullptr, &setup)), 0);
    const char name = static_cast<char>('a' + i);
    rdma_conn_param wanted = parameters_with({&name, 1});
    ASSERT_EQ(errno_of(rdma_connect(clients[i].get(), &wanted)), 0);
  }
  for (std::size_t i = 0; i < kClients; ++i) {
    const Event request = listening.expect(RDMA_CM_EVENT_CONNECT_REQUEST);
    const auto number = static_cast<std::size_t>(request.data[0] - 'a');
    ASSERT_LT(number, kClients);
    EXPECT_EQ(servers[number], nullptr);
    servers[number].reset(request.id);
    EXPECT_EQ(request.conn.qp_num, clients[number]->qp->qp_num);
    ibv_qp_init_attr setup = pair_setup(IBV_QPT_RC);
    ASSERT_EQ(errno_of(rdma_create_qp(request.id, nullptr, &setup)), 0);
    ASSERT_EQ(errno_of(rdma_accept(request.id, nullptr)), 0);
  }
  for (std::size_t i = 0; i < kClients; ++i) {
    connecting.expect(RDMA_CM_EVENT_ESTABLISHED);
    listening.expect(RDMA_CM_EVENT_ESTABLISHED);
  }
  for (std::size_t i = 0; i < kClients; ++i) {
    Parties::expect_message(*clients[i], *servers[i], static_cast<char>('A' + i));
  }
}

}  // namespace
}  // namespace weft::rdmacm_conformance
