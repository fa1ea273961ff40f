// SPDX-License-Identifier: BSD-2-Clause
// Which queue pair, completion queues and protection domain does an id get? (rdma_create_qp(3))
#include "support/parties.h"

namespace weft::rdmacm_conformance {
namespace {

class QueuePair : public testing::Test {
 protected:
  int create_errno(ibv_pd* pd, ibv_qp_init_attr& setup) {
    return errno_of(rdma_create_qp(id_.get(), pd, &setup));
  }

  ibv_qp_attr query(ibv_qp_init_attr& initial) {
    ibv_qp_attr attributes{};
    EXPECT_EQ(ibv_query_qp(id_->qp, &attributes, IBV_QP_STATE | IBV_QP_CAP, &initial), 0);
    return attributes;
  }

  Channel channel_;
  Owned<rdma_cm_id> id_ = resolved_to(channel_, Address(kIpv4Loopback, 1));
  ibv_qp_init_attr setup_ = pair_setup(IBV_QPT_RC);
};

TEST_F(QueuePair, WithoutQueuesGetsSomeWithChannels) {
  ibv_pd* const pd = id_->pd;
  ASSERT_EQ(create_errno(nullptr, setup_), 0);
  ASSERT_NE(id_->qp, nullptr);
  EXPECT_EQ(id_->pd, pd);
  EXPECT_EQ(id_->qp->pd, pd);
  EXPECT_EQ(id_->qp->context, id_->verbs);
  ASSERT_NE(id_->send_cq, nullptr);
  ASSERT_NE(id_->recv_cq, nullptr);
  EXPECT_NE(id_->send_cq, id_->recv_cq);
  EXPECT_EQ(id_->qp->send_cq, id_->send_cq);
  EXPECT_EQ(id_->qp->recv_cq, id_->recv_cq);
  ASSERT_NE(id_->send_cq_channel, nullptr);
  ASSERT_NE(id_->recv_cq_channel, nullptr);
  EXPECT_EQ(id_->send_cq->channel, id_->send_cq_channel);
  EXPECT_EQ(id_->recv_cq->channel, id_->recv_cq_channel);
  EXPECT_EQ(id_->send_cq->cq_context, id_.get());
  EXPECT_EQ(id_->recv_cq->cq_context, id_.get());
  EXPECT_GE(id_->send_cq->cqe, static_cast<int>(setup_.cap.max_send_wr));
  EXPECT_GE(id_->recv_cq->cqe, static_cast<int>(setup_.cap.max_recv_wr));
  EXPECT_EQ(setup_.send_cq, id_->send_cq);
  EXPECT_EQ(setup_.recv_cq, id_->recv_cq);
}

TEST_F(QueuePair, IsReadyForReceivesAndSaysItsCapacities) {
  const ibv_qp_cap wanted = setup_.cap;
  ASSERT_EQ(create_errno(nullptr, setup_), 0);
  ibv_qp_init_attr initial{};
  const ibv_qp_attr attributes = query(initial);
  EXPECT_EQ(attributes.qp_state, IBV_QPS_INIT);
  EXPECT_EQ(initial.qp_type, IBV_QPT_RC);
  EXPECT_EQ(initial.sq_sig_all, 1);
  EXPECT_GE(setup_.cap.max_send_wr, wanted.max_send_wr);
  EXPECT_GE(setup_.cap.max_inline_data, wanted.max_inline_data);
  EXPECT_EQ(setup_.cap.max_send_wr, initial.cap.max_send_wr);
  EXPECT_EQ(setup_.cap.max_recv_wr, initial.cap.max_recv_wr);
  EXPECT_EQ(setup_.cap.max_send_sge, initial.cap.max_send_sge);
  EXPECT_EQ(setup_.cap.max_recv_sge, initial.cap.max_recv_sge);
  EXPECT_EQ(setup_.cap.max_inline_data, initial.cap.max_inline_data);
  char byte = 0;
  const Owned<ibv_mr> region(rdma_reg_msgs(id_.get(), &byte, 1));
  EXPECT_EQ(rdma_post_recv(id_.get(), nullptr, &byte, 1, region.get()), 0);
}

TEST_F(QueuePair, OfDatagramsIsReadyForSendsWithTheQueueKeyOfRdmaCm) {
  id_ = resolved_to(channel_, Address(kIpv4Loopback, 1), RDMA_PS_UDP);
  setup_.qp_type = IBV_QPT_UD;
  ASSERT_EQ(create_errno(nullptr, setup_), 0);
  ibv_qp_attr attributes{};
  ibv_qp_init_attr initial{};
  ASSERT_EQ(ibv_query_qp(id_->qp, &attributes, IBV_QP_STATE | IBV_QP_QKEY, &initial), 0);
  EXPECT_EQ(attributes.qp_state, IBV_QPS_RTS);
  EXPECT_EQ(attributes.qkey, 0x01234567U);
}

TEST_F(QueuePair, UsesTheQueuesAndTheDomainOfTheProgram) {
  const Owned<ibv_pd> pd(ibv_alloc_pd(id_->verbs));
  const Owned<ibv_cq> queue(ibv_create_cq(id_->verbs, 16, nullptr, nullptr, 0));
  setup_.send_cq = setup_.recv_cq = queue.get();
  ASSERT_EQ(create_errno(pd.get(), setup_), 0);
  EXPECT_EQ(id_->qp->pd, pd.get());
  EXPECT_EQ(id_->pd, pd.get());
  EXPECT_EQ(id_->qp->send_cq, queue.get());
  EXPECT_EQ(id_->qp->recv_cq, queue.get());
  EXPECT_EQ(id_->send_cq_channel, nullptr);
  EXPECT_EQ(id_->recv_cq_channel, nullptr);
  rdma_destroy_qp(id_.get());
  EXPECT_EQ(id_->qp, nullptr);
}

TEST_F(QueuePair, TakesOneQueueOfTheProgramAndMakesTheOther) {
  const Owned<ibv_cq> queue(ibv_create_cq(id_->verbs, 16, nullptr, nullptr, 0));
  setup_.send_cq = queue.get();
  ASSERT_EQ(create_errno(nullptr, setup_), 0);
  EXPECT_EQ(id_->qp->send_cq, queue.get());
  ASSERT_NE(id_->recv_cq, nullptr);
  EXPECT_NE(id_->recv_cq, queue.get());
  EXPECT_NE(id_->recv_cq_channel, nullptr);
  rdma_destroy_qp(id_.get());
  EXPECT_EQ(id_->recv_cq, nullptr);
}

TEST_F(QueuePair, GoesWithTheQueuesThatWereMadeForIt) {
  ASSERT_EQ(create_errno(nullptr, setup_), 0);
  rdma_destroy_qp(id_.get());
  EXPECT_EQ(id_->qp, nullptr);
  EXPECT_EQ(id_->send_cq, nullptr);
  EXPECT_EQ(id_->recv_cq, nullptr);
  EXPECT_EQ(id_->send_cq_channel, nullptr);
  EXPECT_EQ(id_->recv_cq_channel, nullptr);
  ibv_qp_init_attr second = pair_setup(IBV_QPT_RC);
  EXPECT_EQ(create_errno(nullptr, second), 0);
}

TEST_F(QueuePair, IsTheOnlyOneOfItsId) {
  ASSERT_EQ(create_errno(nullptr, setup_), 0);
  ibv_qp* const first = id_->qp;
  ibv_qp_init_attr second = pair_setup(IBV_QPT_RC);
  EXPECT_EQ(create_errno(nullptr, second), EINVAL);
  EXPECT_EQ(id_->qp, first);
}

TEST_F(QueuePair, WithADomainOfAnotherContextIsRefused) {
  ibv_device** const list = ibv_get_device_list(nullptr);
  ASSERT_NE(list, nullptr);
  const Owned<ibv_context> other(ibv_open_device(list[0]));
  ibv_free_device_list(list);
  const Owned<ibv_pd> pd(ibv_alloc_pd(other.get()));
  EXPECT_EQ(create_errno(pd.get(), setup_), EINVAL);
  EXPECT_EQ(id_->qp, nullptr);
  EXPECT_EQ(id_->send_cq, nullptr);
  EXPECT_EQ(create_errno(nullptr, setup_), 0);
}

TEST_F(QueuePair, WithAQueueBesidesThatOfItsIdIsRefused) {
  const Owned<ibv_cq> queue(ibv_create_cq(id_->verbs, 16, nullptr, nullptr, 0));
  const Owned<ibv_cq> other(ibv_create_cq(id_->verbs, 16, nullptr, nullptr, 0));
  id_->send_cq = id_->recv_cq = queue.get();
  ibv_qp_init_attr setup = setup_;
  setup.send_cq = other.get();
  EXPECT_EQ(create_errno(nullptr, setup), EINVAL);
  setup = setup_;
  setup.recv_cq = other.get();
  EXPECT_EQ(create_errno(nullptr, setup), EINVAL);
  setup = setup_;
  setup.send_cq = setup.recv_cq = queue.get();
  EXPECT_EQ(create_errno(nullptr, setup), 0);
  rdma_destroy_qp(id_.get());
  id_->send_cq = id_->recv_cq = nullptr;
}

TEST_F(QueuePair, ThatTheDeviceRefusesLeavesTheIdAsItWas) {
  setup_.cap.max_send_wr = 1U << 30;
  const Owned<ibv_cq> queue(ibv_create_cq(id_->verbs, 16, nullptr, nullptr, 0));
  setup_.send_cq = queue.get();
  EXPECT_NE(create_errno(nullptr, setup_), 0);
  EXPECT_EQ(id_->qp, nullptr);
  EXPECT_EQ(id_->recv_cq, nullptr);
  setup_ = pair_setup(IBV_QPT_RC);
  EXPECT_EQ(create_errno(nullptr, setup_), 0);
}

TEST_F(QueuePair, TakesTheSharedReceiveQueueOfItsId) {
  ibv_srq_init_attr shared{nullptr, {8, 1, 0}};
  ASSERT_EQ(errno_of(rdma_create_srq(id_.get(), nullptr, &shared)), 0);
  ASSERT_EQ(create_errno(nullptr, setup_), 0);
  EXPECT_EQ(id_->qp->srq, id_->srq);
  EXPECT_EQ(setup_.srq, id_->srq);
}

TEST_F(QueuePair, OfAnIdWithoutADeviceIsRefused) {
  id_ = new_id(channel_.get());
  EXPECT_EQ(create_errno(nullptr, setup_), EINVAL);
  ASSERT_EQ(errno_of(rdma_bind_addr(id_.get(), Address(kIpv4Any).get())), 0);
  EXPECT_EQ(create_errno(nullptr, setup_), EINVAL);
}

TEST_F(QueuePair, CanBeMadeOnceAnIdIsBoundToADevice) {
  id_ = new_id(channel_.get());
  ASSERT_EQ(errno_of(rdma_bind_addr(id_.get(), Address(kIpv4Loopback).get())), 0);
  EXPECT_EQ(create_errno(nullptr, setup_), 0);
}

TEST_F(QueuePair, TakesExtendedAttributes) {
  ibv_qp_init_attr_ex setup{};
  setup.cap = setup_.cap;
  setup.qp_type = IBV_QPT_RC;
  ASSERT_EQ(errno_of(rdma_create_qp_ex(id_.get(), &setup)), 0);
  ASSERT_NE(id_->qp, nullptr);
  EXPECT_EQ(id_->qp->pd, id_->pd);
  EXPECT_GE(setup.cap.max_inline_data, setup_.cap.max_inline_data);
}

TEST_F(QueuePair, MayBeDestroyedByVerbsOnceTheIdIsGone) {
  // As some programs do: the id is destroyed with its queue pair left.
  const Owned<ibv_cq> queue(ibv_create_cq(id_->verbs, 16, nullptr, nullptr, 0));
  setup_.send_cq = setup_.recv_cq = queue.get();
  ASSERT_EQ(create_errno(nullptr, setup_), 0);
  const Owned<ibv_qp> left(id_->qp);
  EXPECT_EQ(errno_of(rdma_destroy_id(id_.release())), 0);
  EXPECT_EQ(left->state, IBV_QPS_INIT);
}

}  // namespace
}  // namespace weft::rdmacm_conformance
