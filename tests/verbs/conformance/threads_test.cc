// SPDX-License-Identifier: BSD-2-Clause
// May several threads use one context, one queue pair and one completion queue? (verbs(7))
#include <poll.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <memory>
#include <thread>
#include <vector>

#include "support/end.h"

namespace weft::verbs_conformance {
namespace {

constexpr int kThreads = 4;

template <class Body>
void in_threads(const Body& body) {
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) threads.emplace_back([&body, i] { body(i); });
  for (std::thread& each : threads) each.join();
}

EndSetup in(ibv_context* context) {
  EndSetup setup;
  setup.context = context;
  return setup;
}

// Each thread has a connection within one context.
TEST(Threads, WithConnectionsOfTheirOwnShareAContext) {
  const auto context = open_device();
  std::vector<std::unique_ptr<Pair>> pairs;
  for (int i = 0; i < kThreads; ++i) pairs.push_back(std::make_unique<Pair>(in(context.get())));
  in_threads([&](int number) {
    Pair& two = *pairs[static_cast<std::size_t>(number)];
    for (std::uint64_t id = 0; id < 200; ++id) {
      std::memset(two.a.memory(), static_cast<int>(id), 64);
      ASSERT_EQ(two.b.receive(64, id), 0);
      ASSERT_EQ(two.a.send(64, id), 0);
      ASSERT_EQ(two.a.sent().status, IBV_WC_SUCCESS);
      ASSERT_EQ(two.b.received().wr_id, id);
      ASSERT_EQ(two.b.memory()[63], static_cast<std::byte>(id));
      ASSERT_EQ(two.a.write(two.b.place(4096), 5000), 0);
      ASSERT_EQ(two.a.read(two.b.place(4096), 5000), 0);
      ASSERT_EQ(two.a.sent().status, IBV_WC_SUCCESS);
      ASSERT_EQ(two.a.sent().status, IBV_WC_SUCCESS);
    }
  });
}

TEST(Threads, MakeAndDestroyObjectsOfOneContextAtOnce) {
  const auto context = open_device();
  in_threads([&](int) {
    for (int round = 0; round < 20; ++round) {
      Pair two(in(context.get()));
      ASSERT_EQ(two.b.receive(64), 0);
      ASSERT_EQ(two.a.send(64), 0);
      ASSERT_EQ(two.a.sent().status, IBV_WC_SUCCESS);
      ASSERT_EQ(two.b.received().status, IBV_WC_SUCCESS);
    }
  });
}

// Every request has one completion, whichever thread polls it.
TEST(Threads, PostToOneQueuePairAndPollOneQueue) {
  constexpr int kEach = 500;
  Pair two;
  std::atomic<int> sent{0};
  std::atomic<int> received{0};
  in_threads([&](int) {
    int posted = 0;
    const bool all = holds_in_time([&] {
      two.b.receive(16);  // or the queue is full
      if (posted < kEach && two.a.send(16) == 0) ++posted;
      std::array<ibv_wc, 4> wc{};
      const int done = ibv_poll_cq(two.a.sends(), 4, wc.data());
      for (int i = 0; i < done; ++i)
        EXPECT_EQ(wc[static_cast<std::size_t>(i)].status, IBV_WC_SUCCESS);
      sent += done;
      received += ibv_poll_cq(two.b.receives(), 4, wc.data());
      return sent == kThreads * kEach && received == kThreads * kEach;
    });
    EXPECT_TRUE(all);
    EXPECT_EQ(posted, kEach);
  });
}

// Queue pairs end while another thread polls their queue.
TEST(Threads, DestroyQueuePairsWhileAnotherPolls) {
  End end;
  std::atomic<bool> over{false};
  std::thread polling([&] {
    std::array<ibv_wc, 8> wc{};
    while (!over) ibv_poll_cq(end.receives(), 8, wc.data());
  });
  for (int round = 0; round < 100; ++round) {
    ibv_qp_init_attr wanted = reliable_setup(end.receives(), {16, 16, 1, 1, 0});
    const Owned<ibv_qp> qp(ibv_create_qp(end.pd(), &wanted));
    ASSERT_NE(qp, nullptr);
    ibv_qp_attr attributes = end.usual();
    ASSERT_EQ(move_to(qp.get(), IBV_QPS_INIT, attributes), 0);
    ASSERT_EQ(move_to(qp.get(), IBV_QPS_ERR), 0);
    for (int i = 0; i < 8; ++i) {
      SendRequest send(IBV_WR_SEND, {end.part(0, 8)});
      ibv_send_wr* bad = nullptr;
      ASSERT_EQ(ibv_post_send(qp.get(), send.get(), &bad), 0);
    }
  }
  over = true;
  polling.join();
}

// A thread that sleeps in ibv_get_cq_event(3) hears of a message that arrives then.
TEST(Threads, SleepForACompletion) {
  End a;
  End b;
  const Owned<ibv_comp_channel> channel(ibv_create_comp_channel(b.context()));
  const Owned<ibv_cq> cq(ibv_create_cq(b.context(), 16, nullptr, channel.get(), 0));
  ibv_qp_init_attr wanted = reliable_setup(cq.get(), {16, 16, 1, 1, 0});
  const Owned<ibv_qp> qp(ibv_create_qp(b.pd(), &wanted));
  ASSERT_NE(qp, nullptr);
  ibv_qp_attr attributes = b.usual();
  attributes.dest_qp_num = a.qp()->qp_num;
  ASSERT_EQ(move_to(qp.get(), IBV_QPS_INIT, attributes), 0);
  ASSERT_EQ(move_to(qp.get(), IBV_QPS_RTR, attributes), 0);
  a.connect(qp->qp_num);
  constexpr int kRounds = 20;
  std::thread sleeping([&] {
    for (int round = 0; round < kRounds; ++round) {
      ReceiveRequest request({b.part(0, 8)});
      ibv_recv_wr* bad = nullptr;
      ASSERT_EQ(ibv_post_recv(qp.get(), request.get(), &bad), 0);
      ASSERT_EQ(ibv_req_notify_cq(cq.get(), 0), 0);
      ibv_wc wc{};
      while (ibv_poll_cq(cq.get(), 1, &wc) == 0) {
        ibv_cq* of = nullptr;
        void* context = nullptr;
        ASSERT_EQ(ibv_get_cq_event(channel.get(), &of, &context), 0);
        ibv_ack_cq_events(of, 1);
        ASSERT_EQ(ibv_req_notify_cq(cq.get(), 0), 0);
      }
      ASSERT_EQ(wc.status, IBV_WC_SUCCESS);
    }
  });
  for (int round = 0; round < kRounds; ++round) {
    ASSERT_EQ(a.send(8), 0);
    ASSERT_EQ(a.sent().status, IBV_WC_SUCCESS);
  }
  sleeping.join();
}

// Another UDP port is opened while a thread sleeps on those that there were.
TEST(Threads, SleepWhileQueuePairsOfAnotherPortAreMade) {
  End a;
  End b;
  const Owned<ibv_comp_channel> channel(ibv_create_comp_channel(b.context()));
  const Owned<ibv_cq> cq(ibv_create_cq(b.context(), 16, nullptr, channel.get(), 0));
  ASSERT_NE(cq, nullptr);
  std::vector<Owned<ibv_qp>> pairs;
  const auto add = [&] {
    ibv_qp_init_attr wanted = reliable_setup(cq.get(), {1, 1, 1, 1, 0});
    pairs.emplace_back(ibv_create_qp(b.pd(), &wanted));
    ASSERT_NE(pairs.back(), nullptr);
  };
  add();
  ASSERT_EQ(ibv_req_notify_cq(cq.get(), 0), 0);
  std::thread sleeping([&] {
    ibv_cq* of = nullptr;
    void* context = nullptr;
    EXPECT_EQ(ibv_get_cq_event(channel.get(), &of, &context), 0);
    ibv_ack_cq_events(of, 1);
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  while (pairs.back()->qp_num >> 8 == pairs.front()->qp_num >> 8) add();
  ibv_qp* const last = pairs.back().get();
  ibv_qp_attr attributes = b.usual();
  attributes.dest_qp_num = a.qp()->qp_num;
  ASSERT_EQ(move_to(last, IBV_QPS_INIT, attributes), 0);
  ASSERT_EQ(move_to(last, IBV_QPS_RTR, attributes), 0);
  ReceiveRequest request({b.part(0, 8)});
  ibv_recv_wr* bad = nullptr;
  ASSERT_EQ(ibv_post_recv(last, request.get(), &bad), 0);
  a.connect(last->qp_num);
  ASSERT_EQ(a.send(8), 0);
  EXPECT_EQ(a.sent().status, IBV_WC_SUCCESS);
  sleeping.join();
  ibv_wc wc{};
  EXPECT_EQ(ibv_poll_cq(cq.get(), 1, &wc), 1);
}

}  // namespace
}  // namespace weft::verbs_conformance
