// SPDX-License-Identifier: BSD-2-Clause
// Which transports does RDMA_PS_IB connect? (rdma_create_id(3), rdma_getaddrinfo(3))
#include "support/parties.h"

namespace weft::rdmacm_conformance {
namespace {

// An endpoint of that type, on a channel.
Owned<rdma_cm_id> endpoint(Channel& channel, const Address& address, bool is_passive,
                           ibv_qp_type type, ibv_qp_init_attr* setup) {
  Address copy = address;
  rdma_addrinfo info{};
  info.ai_flags = is_passive ? RAI_PASSIVE : 0;
  info.ai_family = copy.get()->sa_family;
  info.ai_qp_type = type;
  info.ai_port_space = RDMA_PS_IB;
  (is_passive ? info.ai_src_addr : info.ai_dst_addr) = copy.get();
  (is_passive ? info.ai_src_len : info.ai_dst_len) = copy.length();
  rdma_cm_id* id = nullptr;
  EXPECT_EQ(errno_of(rdma_create_ep(&id, &info, nullptr, setup)), 0);
  EXPECT_EQ(errno_of(rdma_migrate_id(id, channel.get())), 0);
  return Owned<rdma_cm_id>(id);
}

// A listener and a client of two types.
class Transports : public testing::Test {
 protected:
  void ask(ibv_qp_type of_listener, ibv_qp_type of_client) {
    listener_ = endpoint(listening_, Address(kIpv4Loopback), true, of_listener, nullptr);
    ASSERT_EQ(errno_of(rdma_listen(listener_.get(), 0)), 0);
    ibv_qp_init_attr setup = pair_setup(of_client);
    if (of_client == IBV_QPT_XRC_SEND) setup.cap.max_recv_wr = setup.cap.max_recv_sge = 0;
    client_ = endpoint(connecting_, Address(kIpv4Loopback, source_port(*listener_)), false,
                       of_client, &setup);
    rdma_conn_param wanted = parameters_with();
    ASSERT_EQ(errno_of(rdma_connect(client_.get(), &wanted)), 0);
  }

  void accept() {
    server_.reset(listening_.expect(RDMA_CM_EVENT_CONNECT_REQUEST).id);
    ASSERT_NE(server_, nullptr);
    EXPECT_EQ(server_->qp_type, listener_->qp_type);
    ibv_qp_init_attr setup = pair_setup(server_->qp_type);
    if (server_->qp_type == IBV_QPT_XRC_RECV) setup.cap = {};
    ASSERT_EQ(errno_of(rdma_create_qp(server_.get(), nullptr, &setup)), 0);
    rdma_conn_param wanted = parameters_with();
    ASSERT_EQ(errno_of(rdma_accept(server_.get(), &wanted)), 0);
    established_ = connecting_.expect(RDMA_CM_EVENT_ESTABLISHED);
  }

  Channel listening_;
  Channel connecting_;
  Owned<rdma_cm_id> listener_;
  Owned<rdma_cm_id> client_;
  Owned<rdma_cm_id> server_;
  Event established_;
};

TEST_F(Transports, OfUnreliableConnectionsMoveMessages) {
  ask(IBV_QPT_UC, IBV_QPT_UC);
  accept();
  listening_.expect(RDMA_CM_EVENT_ESTABLISHED);
  Parties::expect_message(*client_, *server_, 'a');
  Parties::expect_message(*server_, *client_, 'b');
  ASSERT_EQ(errno_of(rdma_disconnect(server_.get())), 0);
  connecting_.expect(RDMA_CM_EVENT_DISCONNECTED);
}

TEST_F(Transports, OfDatagramsFindTheQueuePair) {
  ask(IBV_QPT_UD, IBV_QPT_UD);
  accept();
  EXPECT_EQ(established_.ud.qp_num, server_->qp->qp_num);
  EXPECT_EQ(established_.ud.qkey, 0x01234567U);
}

// Its shared receive queue is named by a number that the program sends (rdma_xserver(1)).
TEST_F(Transports, OfExtendedReliableConnectionsMoveMessages) {
  ask(IBV_QPT_XRC_RECV, IBV_QPT_XRC_SEND);
  accept();
  listening_.expect(RDMA_CM_EVENT_ESTABLISHED);
  EXPECT_EQ(server_->qp->qp_type, IBV_QPT_XRC_RECV);
  ibv_srq_init_attr setup{nullptr, {8, 1, 0}};
  ASSERT_EQ(errno_of(rdma_create_srq(server_.get(), nullptr, &setup)), 0);
  char sent = 'x';
  char received = 0;
  const Owned<ibv_mr> source(rdma_reg_msgs(client_.get(), &sent, 1));
  const Owned<ibv_mr> target(rdma_reg_msgs(server_.get(), &received, 1));
  ASSERT_EQ(rdma_post_recv(server_.get(), nullptr, &received, 1, target.get()), 0);
  std::uint32_t queue = 0;
  ASSERT_EQ(ibv_get_srq_num(server_->srq, &queue), 0);
  ibv_sge part{reinterpret_cast<std::uint64_t>(&sent), 1, source->lkey};
  ibv_send_wr send{};
  send.opcode = IBV_WR_SEND;
  send.sg_list = &part;
  send.num_sge = 1;
  send.qp_type.xrc.remote_srqn = queue;
  ibv_send_wr* bad = nullptr;
  ASSERT_EQ(ibv_post_send(client_->qp, &send, &bad), 0);
  EXPECT_EQ(next_completion(*client_->send_cq).status, IBV_WC_SUCCESS);
  EXPECT_EQ(next_completion(*server_->recv_cq).status, IBV_WC_SUCCESS);
  EXPECT_EQ(received, 'x');
}

TEST_F(Transports, OfTwoKindsAreRejected) {
  ask(IBV_QPT_UC, IBV_QPT_RC);
  constexpr int kInvalidTransport = 9;
  EXPECT_EQ(connecting_.expect(RDMA_CM_EVENT_REJECTED, kInvalidTransport).id, client_.get());
  EXPECT_FALSE(listening_.is_readable());
}

}  // namespace
}  // namespace weft::rdmacm_conformance
