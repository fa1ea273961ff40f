// SPDX-License-Identifier: BSD-2-Clause
// Which objects may be destroyed, and when? (ibv_dealloc_pd(3), ibv_ack_async_event(3))
#include <atomic>
#include <cerrno>
#include <chrono>
#include <thread>

#include "support/end.h"

namespace weft::verbs_conformance {
namespace {

TEST(InUse, ObjectsStayAndAreUsable) {
  Pair two({}, [] {
    EndSetup shared;
    shared.shared_receives = 8;
    return shared;
  }());
  EXPECT_EQ(ibv_dealloc_pd(two.b.pd()), EBUSY);
  EXPECT_EQ(ibv_destroy_cq(two.b.sends()), EBUSY);
  EXPECT_EQ(ibv_destroy_cq(two.b.receives()), EBUSY);
  EXPECT_EQ(ibv_destroy_srq(two.b.srq()), EBUSY);
  ASSERT_EQ(two.b.receive(8), 0);
  ASSERT_EQ(two.a.send(8), 0);
  EXPECT_EQ(two.a.sent().status, IBV_WC_SUCCESS);
  EXPECT_EQ(two.b.received().status, IBV_WC_SUCCESS);
}

TEST(InUse, IsAProtectionDomainByEachOfItsObjects) {
  const auto context = open_device();
  const Owned<ibv_pd> pd(ibv_alloc_pd(context.get()));
  std::byte memory[64];
  {
    const Owned<ibv_mr> mr(ibv_reg_mr(pd.get(), memory, sizeof memory, 0));
    EXPECT_EQ(ibv_dealloc_pd(pd.get()), EBUSY);
  }
  {
    ibv_ah_attr address = address_of(gid_of(context.get()));
    const Owned<ibv_ah> ah(ibv_create_ah(pd.get(), &address));
    ASSERT_NE(ah, nullptr);
    EXPECT_EQ(ibv_dealloc_pd(pd.get()), EBUSY);
  }
  ibv_srq_init_attr shared{nullptr, {1, 1, 0}};
  const Owned<ibv_srq> srq(ibv_create_srq(pd.get(), &shared));
  EXPECT_EQ(ibv_dealloc_pd(pd.get()), EBUSY);
}

TEST(InUse, IsAChannelByItsQueues) {
  const auto context = open_device();
  const Owned<ibv_comp_channel> channel(ibv_create_comp_channel(context.get()));
  ASSERT_NE(channel, nullptr);
  {
    const Owned<ibv_cq> cq(ibv_create_cq(context.get(), 1, nullptr, channel.get(), 0));
    EXPECT_EQ(channel->refcnt, 1);
    EXPECT_EQ(ibv_destroy_comp_channel(channel.get()), EBUSY);
  }
  EXPECT_EQ(channel->refcnt, 0);
}

// As with rdma-core; perftest leaves a completion queue.
TEST(InUse, ObjectsOutliveTheCloseOfTheirDevice) {
  ibv_context* const context = open_device().release();
  const Owned<ibv_pd> pd(ibv_alloc_pd(context));
  const Owned<ibv_cq> cq(ibv_create_cq(context, 1, nullptr, nullptr, 0));
  const Owned<ibv_comp_channel> channel(ibv_create_comp_channel(context));
  EXPECT_EQ(ibv_close_device(context), 0);
  std::byte memory[64];
  const Owned<ibv_mr> mr(ibv_reg_mr(pd.get(), memory, sizeof memory, 0));
  EXPECT_NE(mr, nullptr);
  ibv_wc completion{};
  EXPECT_EQ(ibv_poll_cq(cq.get(), 1, &completion), 0);
}

TEST(NoObject, IsRefused) {
  EXPECT_EQ(ibv_dealloc_pd(nullptr), EINVAL);
  EXPECT_EQ(ibv_dereg_mr(nullptr), EINVAL);
  EXPECT_EQ(ibv_destroy_cq(nullptr), EINVAL);
  EXPECT_EQ(ibv_destroy_comp_channel(nullptr), EINVAL);
  EXPECT_EQ(ibv_destroy_qp(nullptr), EINVAL);
  EXPECT_EQ(ibv_destroy_srq(nullptr), EINVAL);
  EXPECT_EQ(ibv_destroy_ah(nullptr), EINVAL);
  EXPECT_NE(ibv_close_device(nullptr), 0);
  ibv_qp_init_attr wanted{};
  EXPECT_EQ(ibv_create_qp(nullptr, &wanted), nullptr);
  ibv_srq_init_attr shared{nullptr, {1, 1, 0}};
  EXPECT_EQ(ibv_create_srq(nullptr, &shared), nullptr);
}

TEST(QueuePair, NeedsQueuesOfItsOwnContext) {
  End end;
  const auto other = open_device();
  const Owned<ibv_cq> foreign(ibv_create_cq(other.get(), 4, nullptr, nullptr, 0));
  const Owned<ibv_pd> foreign_pd(ibv_alloc_pd(other.get()));
  ibv_srq_init_attr shared{nullptr, {1, 1, 0}};
  const Owned<ibv_srq> foreign_srq(ibv_create_srq(foreign_pd.get(), &shared));
  const auto refused = [&](ibv_cq* sends, ibv_cq* receives, ibv_srq* srq, ibv_qp_type type) {
    ibv_qp_init_attr wanted{};
    wanted.send_cq = sends;
    wanted.recv_cq = receives;
    wanted.srq = srq;
    wanted.qp_type = type;
    wanted.cap = {1, 1, 1, 1, 0};
    errno = 0;
    ibv_qp* const made = ibv_create_qp(end.pd(), &wanted);
    const int error = errno;
    if (made != nullptr) ibv_destroy_qp(made);
    return made == nullptr ? error : 0;
  };
  EXPECT_EQ(refused(nullptr, end.receives(), nullptr, IBV_QPT_RC), EINVAL);
  EXPECT_EQ(refused(end.sends(), nullptr, nullptr, IBV_QPT_RC), EINVAL);
  EXPECT_EQ(refused(foreign.get(), end.receives(), nullptr, IBV_QPT_RC), EINVAL);
  EXPECT_EQ(refused(end.sends(), foreign.get(), nullptr, IBV_QPT_RC), EINVAL);
  EXPECT_EQ(refused(end.sends(), end.receives(), foreign_srq.get(), IBV_QPT_RC), EINVAL);
  EXPECT_EQ(refused(end.sends(), end.receives(), nullptr, static_cast<ibv_qp_type>(0xF0)), EINVAL);
  EXPECT_EQ(refused(end.sends(), end.receives(), nullptr, IBV_QPT_RC), 0);
}

TEST(CompletionQueue, NeedsAChannelOfItsOwnContext) {
  const auto context = open_device();
  const auto other = open_device();
  const Owned<ibv_comp_channel> channel(ibv_create_comp_channel(other.get()));
  errno = 0;
  EXPECT_EQ(ibv_create_cq(context.get(), 1, nullptr, channel.get(), 0), nullptr);
  EXPECT_EQ(errno, EINVAL);
}

// Programs can overwrite what they can see. The object is found damaged, and stays.
template <class Object, class Destroy>
void survives_damage(Object* object, const Destroy& destroy) {
  const auto is_refused = [](int error) { return error == ENOENT || error == EINVAL; };
  const auto handle = object->handle;
  object->handle = handle + 1;
  EXPECT_PRED1(is_refused, destroy(object));
  object->handle = handle;
  ibv_context* const context = object->context;
  object->context = nullptr;
  EXPECT_PRED1(is_refused, destroy(object));
  object->context = context;
}

TEST(OverwrittenHandle, IsNoticedByEachDestroyingCall) {
  EndSetup setup;
  setup.shared_receives = 4;
  End end(setup);
  survives_damage(end.pd(), ibv_dealloc_pd);
  survives_damage(end.mr(), ibv_dereg_mr);
  survives_damage(end.qp(), ibv_destroy_qp);
  survives_damage(end.sends(), ibv_destroy_cq);
  survives_damage(end.srq(), ibv_destroy_srq);
  ibv_ah_attr address = address_of(gid_of(end.context()));
  const Owned<ibv_ah> ah(ibv_create_ah(end.pd(), &address));
  survives_damage(ah.get(), ibv_destroy_ah);
}

TEST(OverwrittenHandle, IsNoticedByModifyAndQuery) {
  const auto is_refused = [](int error) { return error == ENOENT || error == EINVAL; };
  EndSetup setup;
  setup.shared_receives = 4;
  End end(setup);
  ibv_qp_attr attributes = end.usual();
  attributes.qp_state = IBV_QPS_INIT;
  ibv_qp_init_attr initial{};
  ++end.qp()->handle;
  EXPECT_PRED1(is_refused, ibv_modify_qp(end.qp(), &attributes, mask_to(IBV_QPS_INIT, IBV_QPT_RC)));
  EXPECT_PRED1(is_refused, ibv_query_qp(end.qp(), &attributes, 0, &initial));
  --end.qp()->handle;
  ibv_srq_attr shared{4, 1, 0};
  ++end.srq()->handle;
  EXPECT_PRED1(is_refused, ibv_modify_srq(end.srq(), &shared, IBV_SRQ_LIMIT));
  EXPECT_PRED1(is_refused, ibv_query_srq(end.srq(), &shared));
  --end.srq()->handle;
  ++end.receives()->handle;
  EXPECT_PRED1(is_refused, ibv_resize_cq(end.receives(), 8));
  --end.receives()->handle;
  ++end.mr()->handle;
  EXPECT_NE(ibv_rereg_mr(end.mr(), IBV_REREG_MR_CHANGE_ACCESS, nullptr, nullptr, 0, 0), 0);
  --end.mr()->handle;
  EXPECT_EQ(end.state(), IBV_QPS_RESET);
}

// An object goes when the program has acknowledged its events, not earlier: a thread may still hold
// one.
class Unacknowledged : public testing::Test {
 protected:
  template <class Destroy, class Acknowledge>
  void waits(const Destroy& destroy, const Acknowledge& acknowledge) {
    std::atomic<bool> gone{false};
    std::thread destroying([&] {
      EXPECT_EQ(destroy(), 0);
      gone = true;
    });
    std::this_thread::sleep_for(std::chrono::milliseconds(30));
    EXPECT_FALSE(gone);
    acknowledge();
    destroying.join();
    EXPECT_TRUE(gone);
  }
  static ibv_async_event take(ibv_context* context) {
    ibv_async_event event{};
    EXPECT_EQ(ibv_get_async_event(context, &event), 0);
    return event;
  }
};

TEST_F(Unacknowledged, EventOfAQueuePairDelaysItsEnd) {
  const auto context = open_device();
  const Owned<ibv_pd> pd(ibv_alloc_pd(context.get()));
  const Owned<ibv_cq> cq(ibv_create_cq(context.get(), 4, nullptr, nullptr, 0));
  ibv_srq_init_attr shared{nullptr, {1, 1, 0}};
  const Owned<ibv_srq> srq(ibv_create_srq(pd.get(), &shared));
  ibv_qp_init_attr wanted{};
  wanted.send_cq = wanted.recv_cq = cq.get();
  wanted.srq = srq.get();
  wanted.qp_type = IBV_QPT_RC;
  wanted.cap = {1, 0, 1, 0, 0};
  ibv_qp* const qp = ibv_create_qp(pd.get(), &wanted);
  ASSERT_NE(qp, nullptr);
  ibv_qp_attr attributes = usual_attributes(gid_of(context.get()));
  ASSERT_EQ(move_to(qp, IBV_QPS_INIT, attributes), 0);
  ASSERT_EQ(move_to(qp, IBV_QPS_ERR), 0);
  ibv_async_event event = take(context.get());
  EXPECT_EQ(event.event_type, IBV_EVENT_QP_LAST_WQE_REACHED);
  waits([&] { return ibv_destroy_qp(qp); }, [&] { ibv_ack_async_event(&event); });
}

TEST_F(Unacknowledged, EventOfACompletionChannelDelaysTheEndOfTheQueue) {
  End end;
  const Owned<ibv_comp_channel> channel(ibv_create_comp_channel(end.context()));
  ibv_cq* const cq = ibv_create_cq(end.context(), 4, nullptr, channel.get(), 0);
  ASSERT_NE(cq, nullptr);
  {
    ibv_qp_init_attr wanted = reliable_setup(cq, {1, 1, 1, 1, 0});
    const Owned<ibv_qp> qp(ibv_create_qp(end.pd(), &wanted));
    ASSERT_EQ(ibv_req_notify_cq(cq, 0), 0);
    ibv_qp_attr attributes = end.usual();
    ASSERT_EQ(move_to(qp.get(), IBV_QPS_INIT, attributes), 0);
    ReceiveRequest request({end.part(0, 8)});
    ibv_recv_wr* bad = nullptr;
    ASSERT_EQ(ibv_post_recv(qp.get(), request.get(), &bad), 0);
    ASSERT_EQ(move_to(qp.get(), IBV_QPS_ERR), 0);
    ibv_cq* of = nullptr;
    void* context = nullptr;
    ASSERT_EQ(ibv_get_cq_event(channel.get(), &of, &context), 0);
    EXPECT_EQ(of, cq);
  }
  waits([&] { return ibv_destroy_cq(cq); }, [&] { ibv_ack_cq_events(cq, 1); });
}

TEST_F(Unacknowledged, EventOfASharedQueueDelaysItsEnd) {
  End a;
  End b;
  a.partner_with(b);
  ibv_srq_init_attr shared{nullptr, {2, 1, 0}};
  ibv_srq* const srq = ibv_create_srq(b.pd(), &shared);
  ASSERT_NE(srq, nullptr);
  {
    ibv_qp_init_attr wanted{};
    wanted.send_cq = b.sends();
    wanted.recv_cq = b.receives();
    wanted.srq = srq;
    wanted.qp_type = IBV_QPT_RC;
    wanted.cap = {1, 0, 1, 0, 0};
    const Owned<ibv_qp> qp(ibv_create_qp(b.pd(), &wanted));
    ibv_qp_attr attributes = b.usual();
    attributes.dest_qp_num = a.qp()->qp_num;
    ASSERT_EQ(move_to(qp.get(), IBV_QPS_INIT, attributes), 0);
    ASSERT_EQ(move_to(qp.get(), IBV_QPS_RTR, attributes), 0);
    ASSERT_EQ(move_to(qp.get(), IBV_QPS_RTS, attributes), 0);
    a.connect(qp->qp_num);
    ReceiveRequest request({b.part(0, 8)});
    ibv_recv_wr* bad = nullptr;
    ASSERT_EQ(ibv_post_srq_recv(srq, request.get(), &bad), 0);
    ibv_srq_attr limit{0, 0, 1};
    ASSERT_EQ(ibv_modify_srq(srq, &limit, IBV_SRQ_LIMIT), 0);
    ASSERT_EQ(a.send(8), 0);
    ASSERT_EQ(a.sent().status, IBV_WC_SUCCESS);
  }
  ibv_async_event event = take(b.context());
  EXPECT_EQ(event.event_type, IBV_EVENT_SRQ_LIMIT_REACHED);
  waits([&] { return ibv_destroy_srq(srq); }, [&] { ibv_ack_async_event(&event); });
}

TEST_F(Unacknowledged, EventOfAnOverrunDelaysTheEndOfTheQueue) {
  End end;
  ibv_cq* const cq = ibv_create_cq(end.context(), 1, nullptr, nullptr, 0);
  ASSERT_NE(cq, nullptr);
  {
    ibv_qp_init_attr wanted = reliable_setup(cq, {1, 4, 1, 1, 0});
    const Owned<ibv_qp> qp(ibv_create_qp(end.pd(), &wanted));
    ibv_qp_attr attributes = end.usual();
    ASSERT_EQ(move_to(qp.get(), IBV_QPS_INIT, attributes), 0);
    for (int i = 0; i < 4; ++i) {
      ReceiveRequest request({end.part(0, 8)});
      ibv_recv_wr* bad = nullptr;
      ASSERT_EQ(ibv_post_recv(qp.get(), request.get(), &bad), 0);
    }
    ASSERT_EQ(move_to(qp.get(), IBV_QPS_ERR), 0);
  }
  ibv_async_event event = take(end.context());
  EXPECT_EQ(event.event_type, IBV_EVENT_CQ_ERR);
  waits([&] { return ibv_destroy_cq(cq); }, [&] { ibv_ack_async_event(&event); });
}

// Events that were not taken go with their object.
TEST_F(Unacknowledged, EventThatWasNotTakenGoesWithItsObject) {
  EndSetup shared;
  shared.shared_receives = 1;
  End end(shared);
  ASSERT_EQ(end.to_init(end.usual()), 0);
  ASSERT_EQ(end.to_error(), 0);
  end.destroy_qp();
  EXPECT_FALSE(next_event(end.context(), std::chrono::milliseconds(0)));
}

}  // namespace
}  // namespace weft::verbs_conformance
