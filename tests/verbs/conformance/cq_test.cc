// SPDX-License-Identifier: BSD-2-Clause
// How does a completion queue fill, overrun, change its size and wake its program?
// (ibv_create_cq(3))
#include <poll.h>

#include <array>
#include <cerrno>
#include <climits>

#include "support/end.h"

namespace weft::verbs_conformance {
namespace {

ibv_cq* create(ibv_context* context, int entries) {
  return ibv_create_cq(context, entries, nullptr, nullptr, 0);
}

TEST(CompletionQueue, HasAtLeastOneEntryAndAtMostTheLimit) {
  const auto context = open_device();
  for (const int entries : {-1, 0, 1'048'577, INT_MAX, INT_MIN}) {
    errno = 0;
    EXPECT_EQ(create(context.get(), entries), nullptr) << entries;
    EXPECT_EQ(errno, EINVAL);
  }
  for (const int entries : {1, 1'048'576}) {
    const Owned<ibv_cq> cq(create(context.get(), entries));
    ASSERT_NE(cq, nullptr);
    EXPECT_GE(cq->cqe, entries);
  }
}

TEST(CompletionQueue, HasOneVector) {
  const auto context = open_device();
  for (const int vector : {-1, context->num_comp_vectors}) {
    errno = 0;
    EXPECT_EQ(ibv_create_cq(context.get(), 1, nullptr, nullptr, vector), nullptr);
    EXPECT_EQ(errno, EINVAL);
  }
}

// Every post in ERR is a completion at once.
class SmallQueue : public testing::Test {
 protected:
  explicit SmallQueue(int entries = 4) : end(setup(entries)) {
    EXPECT_EQ(end.to_init(end.usual()), 0);
    EXPECT_EQ(end.to_error(), 0);
  }
  static EndSetup setup(int entries) {
    EndSetup setup;
    setup.entries = entries;
    return setup;
  }
  int poll() {
    ibv_wc wc{};
    return ibv_poll_cq(end.receives(), 1, &wc);
  }
  End end;
};

TEST_F(SmallQueue, HoldsAsManyEntriesAsItSays) {
  const int entries = end.receives()->cqe;
  for (int i = 0; i < entries; ++i) ASSERT_EQ(end.receive(8), 0);
  EXPECT_FALSE(next_event(end.context(), std::chrono::milliseconds(0)));
  for (int i = 0; i < entries; ++i) EXPECT_EQ(poll(), 1);
  EXPECT_EQ(poll(), 0);
}

TEST_F(SmallQueue, ReportsAnOverrunOnceAndTakesNoMore) {
  const int entries = end.receives()->cqe;
  for (int i = 0; i < entries + 3; ++i) ASSERT_EQ(end.receive(8, static_cast<unsigned>(i)), 0);
  const ibv_async_event event = await_event(end.context());
  EXPECT_EQ(event.event_type, IBV_EVENT_CQ_ERR);
  EXPECT_EQ(event.element.cq, end.receives());
  for (int i = 0; i < entries; ++i) {
    ibv_wc wc{};
    ASSERT_EQ(ibv_poll_cq(end.receives(), 1, &wc), 1);
    EXPECT_EQ(wc.wr_id, static_cast<unsigned>(i)) << "an entry was overwritten";
  }
  ASSERT_EQ(end.receive(8), 0);
  EXPECT_EQ(poll(), 0) << "a queue that has overrun says nothing more";
}

TEST_F(SmallQueue, GrowsAndShrinks) {
  for (int i = 0; i < 4; ++i) ASSERT_EQ(end.receive(8, static_cast<unsigned>(i)), 0);
  EXPECT_EQ(ibv_resize_cq(end.receives(), 3), EINVAL) << "four entries wait";
  EXPECT_EQ(ibv_resize_cq(end.receives(), 0), EINVAL);
  EXPECT_EQ(ibv_resize_cq(end.receives(), 1'048'577), EINVAL);
  EXPECT_EQ(ibv_resize_cq(end.receives(), 1'048'576), 0);
  EXPECT_GE(end.receives()->cqe, 1'048'576);
  for (int i = 4; i < 100; ++i) ASSERT_EQ(end.receive(8, static_cast<unsigned>(i)), 0);
  for (unsigned i = 0; i < 100; ++i) EXPECT_EQ(end.received().wr_id, i);
  EXPECT_EQ(ibv_resize_cq(end.receives(), 1), 0);
  ASSERT_EQ(end.receive(8), 0);
  EXPECT_EQ(poll(), 1);
}

TEST_F(SmallQueue, IsPolledForAsManyAsAreThere) {
  for (int i = 0; i < 3; ++i) ASSERT_EQ(end.receive(8, static_cast<unsigned>(i)), 0);
  std::array<ibv_wc, 8> all{};
  EXPECT_EQ(ibv_poll_cq(end.receives(), 0, all.data()), 0);
  EXPECT_EQ(ibv_poll_cq(end.receives(), 2, all.data()), 2);
  EXPECT_EQ(ibv_poll_cq(end.receives(), 8, all.data() + 2), 1);
  for (unsigned i = 0; i < 3; ++i) EXPECT_EQ(all[i].wr_id, i);
}

// An overrun of its queue ends a queue pair: what it does could not be reported.
TEST(Overrun, EndsTheQueuePairsOfTheQueue) {
  EndSetup small;
  small.entries = 2;
  Pair two({}, small);
  for (int i = 0; i < 4; ++i) ASSERT_EQ(two.b.receive(8), 0);
  for (int i = 0; i < 4; ++i) ASSERT_EQ(two.a.send(8), 0);
  EXPECT_TRUE(holds_in_time([&] {
    two.a.drive();
    return two.b.state() == IBV_QPS_ERR;
  }));
  bool of_queue = false;
  bool of_pair = false;
  for (int i = 0; i < 2; ++i) {
    const ibv_async_event event = await_event(two.b.context());
    if (event.event_type == IBV_EVENT_CQ_ERR) of_queue = event.element.cq == two.b.receives();
    if (event.event_type == IBV_EVENT_QP_FATAL) of_pair = event.element.qp == two.b.qp();
  }
  EXPECT_TRUE(of_queue);
  EXPECT_TRUE(of_pair);
  EXPECT_FALSE(next_event(two.b.context(), std::chrono::milliseconds(0)));
}

// Events of a channel.
class Notified : public testing::Test {
 protected:
  Notified() : channel(ibv_create_comp_channel(two.b.context())) {
    EXPECT_NE(channel, nullptr);
    cq.reset(ibv_create_cq(two.b.context(), 16, this, channel.get(), 0));
    ibv_qp_init_attr wanted = reliable_setup(cq.get(), {16, 16, 1, 1, 0});
    wanted.sq_sig_all = 1;
    qp.reset(ibv_create_qp(two.b.pd(), &wanted));
    EXPECT_NE(qp, nullptr);
    ibv_qp_attr attributes = two.b.usual();
    attributes.dest_qp_num = two.a.qp()->qp_num;
    EXPECT_EQ(move_to(qp.get(), IBV_QPS_INIT, attributes), 0);
    EXPECT_EQ(move_to(qp.get(), IBV_QPS_RTR, attributes), 0);
    EXPECT_EQ(move_to(qp.get(), IBV_QPS_RTS, attributes), 0);
    two.a.connect(qp->qp_num);
  }
  void receive(std::uint64_t id) {
    ReceiveRequest request({two.b.part(0, 64)}, id);
    ibv_recv_wr* bad = nullptr;
    ASSERT_EQ(ibv_post_recv(qp.get(), request.get(), &bad), 0);
  }
  void send(unsigned flags = 0) {
    ASSERT_EQ(two.a.post(SendRequest(IBV_WR_SEND, {two.a.part(0, 8)}).flagged(flags)), 0);
    ASSERT_EQ(two.a.sent().status, IBV_WC_SUCCESS);
  }
  bool has_event() {
    pollfd look{channel->fd, POLLIN, 0};
    return ::poll(&look, 1, 0) == 1;
  }
  void take_event() {
    ibv_cq* of = nullptr;
    void* context = nullptr;
    ASSERT_EQ(ibv_get_cq_event(channel.get(), &of, &context), 0);
    EXPECT_EQ(of, cq.get());
    EXPECT_EQ(context, this);
    ibv_ack_cq_events(cq.get(), 1);
  }
  int poll() {
    ibv_wc wc{};
    return ibv_poll_cq(cq.get(), 1, &wc);
  }

  struct Ends {
    End a;
    End b;
  };
  Ends two;
  Owned<ibv_comp_channel> channel;
  Owned<ibv_cq> cq;
  Owned<ibv_qp> qp;
};

TEST_F(Notified, OnceForEachRequest) {
  for (std::uint64_t id = 0; id < 4; ++id) receive(id);
  send();
  EXPECT_FALSE(has_event()) << "it was not armed";
  EXPECT_EQ(poll(), 1);
  ASSERT_EQ(ibv_req_notify_cq(cq.get(), 0), 0);
  EXPECT_FALSE(has_event());
  send();
  send();
  take_event();
  EXPECT_FALSE(has_event());
  EXPECT_EQ(poll(), 1);
  EXPECT_EQ(poll(), 1);
}

TEST_F(Notified, OfSolicitedCompletionsAlone) {
  for (std::uint64_t id = 0; id < 4; ++id) receive(id);
  ASSERT_EQ(ibv_req_notify_cq(cq.get(), 1), 0);
  send();
  EXPECT_FALSE(has_event());
  send(IBV_SEND_SOLICITED);
  take_event();
  EXPECT_EQ(poll(), 1);
  EXPECT_EQ(poll(), 1);
}

TEST_F(Notified, OfAnErrorThoughItIsNotSolicited) {
  receive(1);
  ASSERT_EQ(ibv_req_notify_cq(cq.get(), 1), 0);
  ASSERT_EQ(move_to(qp.get(), IBV_QPS_ERR), 0);
  take_event();
  EXPECT_EQ(poll(), 1);
}

TEST_F(Notified, OfAnyCompletionWhenThatWasAskedLast) {
  receive(1);
  ASSERT_EQ(ibv_req_notify_cq(cq.get(), 1), 0);
  ASSERT_EQ(ibv_req_notify_cq(cq.get(), 0), 0);
  send();
  take_event();
  EXPECT_EQ(poll(), 1);
}

TEST_F(Notified, NotOfEntriesThatAreThereAlready) {
  receive(1);
  send();
  ASSERT_EQ(ibv_req_notify_cq(cq.get(), 0), 0);
  EXPECT_FALSE(has_event());
  EXPECT_EQ(poll(), 1);
}

TEST_F(Notified, NeverWithoutAChannel) { EXPECT_NE(ibv_req_notify_cq(two.b.sends(), 0), 0); }

}  // namespace
}  // namespace weft::verbs_conformance
