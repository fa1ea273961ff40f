// SPDX-License-Identifier: BSD-2-Clause
// How do queue pairs share receives, and what does their queue report? (ibv_create_srq(3))
#include <cerrno>

#include "support/end.h"

namespace weft::verbs_conformance {
namespace {

EndSetup shared(std::uint32_t receives) {
  EndSetup setup;
  setup.shared_receives = receives;
  return setup;
}

class SharedQueue : public testing::Test {
 protected:
  SharedQueue() : two({}, shared(8)) {}
  int modify(std::uint32_t size, std::uint32_t limit, int mask) {
    ibv_srq_attr attributes{size, 0, limit};
    return ibv_modify_srq(two.b.srq(), &attributes, mask);
  }
  ibv_srq_attr query() {
    ibv_srq_attr found{};
    EXPECT_EQ(ibv_query_srq(two.b.srq(), &found), 0);
    return found;
  }
  void post(int count) {
    for (int i = 0; i < count; ++i) ASSERT_EQ(two.b.receive(64, posted_++), 0);
  }
  void exchange(int count) {
    for (int i = 0; i < count; ++i) {
      ASSERT_EQ(two.a.send(8), 0);
      ASSERT_EQ(two.a.sent().status, IBV_WC_SUCCESS);
      const ibv_wc wc = two.b.received();
      EXPECT_EQ(wc.status, IBV_WC_SUCCESS);
      EXPECT_EQ(wc.wr_id, taken_++);
      EXPECT_EQ(wc.qp_num, two.b.qp()->qp_num);
    }
  }
  bool reports() { return next_event(two.b.context(), std::chrono::milliseconds(0)).has_value(); }

  Pair two;
  std::uint64_t posted_ = 0;
  std::uint64_t taken_ = 0;
};

TEST_F(SharedQueue, HandsItsReceivesOutInTheirOrder) {
  post(8);
  exchange(8);
}

TEST_F(SharedQueue, IsFullAtItsSize) {
  post(8);
  ReceiveRequest request({two.b.part(0, 8)});
  ibv_recv_wr* bad = nullptr;
  EXPECT_EQ(ibv_post_srq_recv(two.b.srq(), request.get(), &bad), ENOMEM);
  EXPECT_EQ(bad, &request.wr);
}

TEST_F(SharedQueue, RefusesMoreEntriesThanItTakes) {
  const ibv_srq_attr size = query();
  ReceiveRequest first({two.b.part(0, 8)}, posted_++);
  ReceiveRequest second(std::vector<ibv_sge>(size.max_sge + 1, two.b.part(0, 8)));
  ibv_recv_wr* bad = nullptr;
  EXPECT_EQ(ibv_post_srq_recv(two.b.srq(), first.get(second.get()), &bad), EINVAL);
  EXPECT_EQ(bad, &second.wr);
  exchange(1);
}

TEST_F(SharedQueue, ReportsItsLimitOnce) {
  post(4);
  ASSERT_EQ(modify(0, 3, IBV_SRQ_LIMIT), 0);
  EXPECT_EQ(query().srq_limit, 3u);
  exchange(1);
  EXPECT_FALSE(reports()) << "three are left, which is not below the limit";
  exchange(1);
  const ibv_async_event event = await_event(two.b.context());
  EXPECT_EQ(event.event_type, IBV_EVENT_SRQ_LIMIT_REACHED);
  EXPECT_EQ(event.element.srq, two.b.srq());
  EXPECT_EQ(query().srq_limit, 0u);
  exchange(2);
  EXPECT_FALSE(reports());
  post(4);
  ASSERT_EQ(modify(0, 4, IBV_SRQ_LIMIT), 0);
  exchange(1);
  EXPECT_EQ(await_event(two.b.context()).event_type, IBV_EVENT_SRQ_LIMIT_REACHED);
}

TEST_F(SharedQueue, MayBeDisarmed) {
  post(4);
  ASSERT_EQ(modify(0, 3, IBV_SRQ_LIMIT), 0);
  ASSERT_EQ(modify(0, 0, IBV_SRQ_LIMIT), 0);
  exchange(4);
  EXPECT_FALSE(reports());
}

TEST_F(SharedQueue, RefusesALimitAboveItsSize) {
  EXPECT_EQ(modify(0, 9, IBV_SRQ_LIMIT), EINVAL);
  EXPECT_EQ(modify(0, 0, 1 << 7), EINVAL);
  EXPECT_EQ(modify(16, 17, IBV_SRQ_LIMIT | IBV_SRQ_MAX_WR), EINVAL);
  EXPECT_EQ(query().max_wr, 8u) << "all or nothing";
}

TEST_F(SharedQueue, ChangesItsSize) {
  post(4);
  exchange(2);
  post(4);
  EXPECT_EQ(modify(5, 0, IBV_SRQ_MAX_WR), EINVAL) << "six are posted";
  EXPECT_EQ(modify(16'385, 0, IBV_SRQ_MAX_WR), EINVAL);
  ASSERT_EQ(modify(12, 10, IBV_SRQ_MAX_WR | IBV_SRQ_LIMIT), 0);
  EXPECT_EQ(query().max_wr, 12u);
  post(6);
  EXPECT_EQ(two.b.receive(8), ENOMEM);
  exchange(12);
  EXPECT_EQ(await_event(two.b.context()).event_type, IBV_EVENT_SRQ_LIMIT_REACHED);
}

// Its receives stay for the others.
TEST_F(SharedQueue, ReportsTheLastReceiveOfAQueuePairInError) {
  post(4);
  exchange(1);
  ASSERT_EQ(two.b.to_error(), 0);
  const ibv_async_event event = await_event(two.b.context());
  EXPECT_EQ(event.event_type, IBV_EVENT_QP_LAST_WQE_REACHED);
  EXPECT_EQ(event.element.qp, two.b.qp());
  EXPECT_TRUE(two.b.is_quiet()) << "a shared receive was flushed";
  ASSERT_EQ(two.b.to_error(), 0);
  EXPECT_FALSE(reports()) << "it was in ERR already";
  ASSERT_EQ(two.b.to_reset(), 0);
  two.b.connect(two.a.qp()->qp_num);
  ASSERT_EQ(two.a.to_reset(), 0);
  two.a.connect(two.b.qp()->qp_num);
  exchange(3);
}

TEST_F(SharedQueue, WithoutReceivesAsksTheSenderToWait) {
  ASSERT_EQ(two.a.send(8), 0);
  EXPECT_TRUE(two.a.is_quiet());
  post(1);
  EXPECT_EQ(two.a.sent().status, IBV_WC_SUCCESS);
}

TEST(SharedQueues, HaveLimits) {
  const auto context = open_device();
  const Owned<ibv_pd> pd(ibv_alloc_pd(context.get()));
  const auto create = [&](std::uint32_t receives, std::uint32_t entries) {
    ibv_srq_init_attr wanted{nullptr, {receives, entries, 0}};
    return Owned<ibv_srq>(ibv_create_srq(pd.get(), &wanted));
  };
  for (const auto& [receives, entries] : {std::pair{0u, 1u}, {16'385u, 1u}, {1u, 17u}}) {
    errno = 0;
    EXPECT_EQ(create(receives, entries), nullptr);
    EXPECT_EQ(errno, EINVAL);
  }
  const auto largest = create(16'384, 16);
  ASSERT_NE(largest, nullptr);
  ibv_recv_wr* bad = nullptr;
  ReceiveRequest request({});
  for (int i = 0; i < 16'384; ++i) {
    ASSERT_EQ(ibv_post_srq_recv(largest.get(), request.get(), &bad), 0);
  }
  EXPECT_EQ(ibv_post_srq_recv(largest.get(), request.get(), &bad), ENOMEM);
}

}  // namespace
}  // namespace weft::verbs_conformance
