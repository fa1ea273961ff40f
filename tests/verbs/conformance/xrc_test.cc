// SPDX-License-Identifier: BSD-2-Clause
// How do extended reliable connections reach the shared queue that a request names? (annex A14)
#include <cerrno>
#include <cstring>

#include "support/end.h"

namespace weft::verbs_conformance {
namespace {

class ExtendedConnection : public testing::Test {
 protected:
  ExtendedConnection() : context(open_device()) {
    ibv_xrcd_init_attr alone{};
    alone.comp_mask = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS;
    alone.fd = -1;
    domain.reset(ibv_open_xrcd(context.get(), &alone));
    EXPECT_NE(domain, nullptr);
    pd.reset(ibv_alloc_pd(context.get()));
    mr.reset(ibv_reg_mr(pd.get(), memory.data(), memory.size(), static_cast<int>(kAllRights)));
    for (int i = 0; i < 2; ++i) {
      cqs[i].reset(ibv_create_cq(context.get(), 16, nullptr, nullptr, 0));
      srqs[i] = create_srq(cqs[i].get());
      EXPECT_EQ(ibv_get_srq_num(srqs[i].get(), &numbers[i]), 0);
    }
    ibv_qp_init_attr_ex wanted{};
    wanted.qp_type = IBV_QPT_XRC_RECV;
    wanted.comp_mask = IBV_QP_INIT_ATTR_XRCD;
    wanted.xrcd = domain.get();
    target.reset(ibv_create_qp_ex(context.get(), &wanted));
    EXPECT_NE(target, nullptr);
    EndSetup setup;
    setup.type = IBV_QPT_XRC_SEND;
    sender.emplace(setup);
    connect();
  }
  Owned<ibv_srq> create_srq(ibv_cq* cq) {
    ibv_srq_init_attr_ex wanted{};
    wanted.attr = {16, 2, 0};
    wanted.comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_XRCD | IBV_SRQ_INIT_ATTR_CQ |
                       IBV_SRQ_INIT_ATTR_PD;
    wanted.srq_type = IBV_SRQT_XRC;
    wanted.pd = pd.get();
    wanted.xrcd = domain.get();
    wanted.cq = cq;
    return Owned<ibv_srq>(ibv_create_srq_ex(context.get(), &wanted));
  }
  void connect() {
    ibv_qp_attr attributes = usual_attributes(gid_of(context.get()));
    attributes.dest_qp_num = sender->qp()->qp_num;
    ASSERT_EQ(move_to(target.get(), IBV_QPS_INIT, attributes), 0);
    ASSERT_EQ(move_to(target.get(), IBV_QPS_RTR, attributes), 0);
    ASSERT_EQ(move_to(target.get(), IBV_QPS_RTS, attributes), 0);
    sender->connect(target->qp_num);
  }
  void receive(int queue, std::uint64_t id, std::size_t length = 64) {
    ReceiveRequest request({{address(4096), static_cast<std::uint32_t>(length), mr->lkey}}, id);
    ibv_recv_wr* bad = nullptr;
    ASSERT_EQ(ibv_post_srq_recv(srqs[queue].get(), request.get(), &bad), 0);
  }
  std::uint64_t address(std::size_t at) {
    return reinterpret_cast<std::uint64_t>(memory.data()) + at;
  }
  SendRequest request(ibv_wr_opcode opcode, std::uint32_t number, std::size_t length = 8) {
    SendRequest request(opcode, {sender->part(0, length)});
    request.at({address(0), mr->rkey});
    request.wr.qp_type.xrc.remote_srqn = number;
    return request;
  }
  ibv_wc received(int queue) {
    ibv_wc wc{};
    EXPECT_TRUE(holds_in_time([&] {
      sender->drive();
      return ibv_poll_cq(cqs[queue].get(), 1, &wc) != 0;
    }));
    return wc;
  }

  Owned<ibv_context> context;
  Owned<ibv_xrcd> domain;
  std::vector<std::byte> memory = std::vector<std::byte>(1 << 16);
  Owned<ibv_pd> pd;
  Owned<ibv_mr> mr;
  Owned<ibv_cq> cqs[2];
  Owned<ibv_srq> srqs[2];
  std::uint32_t numbers[2]{};
  Owned<ibv_qp> target;
  std::optional<End> sender;
};

TEST_F(ExtendedConnection, RequestsGoToTheQueueThatTheyName) {
  for (std::uint64_t id = 0; id < 4; ++id) {
    receive(0, id);
    receive(1, 100 + id);
  }
  for (std::uint64_t id = 0; id < 4; ++id) {
    for (const int queue : {0, 1}) {
      ASSERT_EQ(sender->post(request(IBV_WR_SEND, numbers[queue])), 0);
      EXPECT_EQ(sender->sent().status, IBV_WC_SUCCESS);
      const ibv_wc wc = received(queue);
      EXPECT_EQ(wc.wr_id, static_cast<unsigned>(queue) * 100 + id);
      EXPECT_EQ(wc.qp_num, target->qp_num);
    }
  }
}

TEST_F(ExtendedConnection, AccessesUseTheProtectionDomainOfThatQueue) {
  std::memset(sender->memory(), 0x2A, 8);
  for (const auto opcode : {IBV_WR_RDMA_WRITE, IBV_WR_RDMA_READ, IBV_WR_ATOMIC_FETCH_AND_ADD}) {
    ASSERT_EQ(sender->post(request(opcode, numbers[0])), 0);
    EXPECT_EQ(sender->sent().status, IBV_WC_SUCCESS);
  }
  EXPECT_EQ(memory[0], std::byte{0x2A});
  const Owned<ibv_pd> other(ibv_alloc_pd(context.get()));
  const Owned<ibv_mr> foreign(
      ibv_reg_mr(other.get(), memory.data(), 64, static_cast<int>(kAllRights)));
  ASSERT_EQ(sender->post(request(IBV_WR_RDMA_WRITE, numbers[0]).at({address(0), foreign->rkey})),
            0);
  EXPECT_EQ(sender->sent().status, IBV_WC_REM_ACCESS_ERR);
  EXPECT_EQ(await_event(context.get()).event_type, IBV_EVENT_QP_ACCESS_ERR);
}

TEST_F(ExtendedConnection, AnUnknownQueueEndsTheConnection) {
  ASSERT_EQ(sender->post(request(IBV_WR_SEND, numbers[1] + 1000)), 0);
  EXPECT_EQ(sender->sent().status, IBV_WC_REM_INV_REQ_ERR);
  const ibv_async_event event = await_event(context.get());
  EXPECT_EQ(event.event_type, IBV_EVENT_QP_REQ_ERR);
  EXPECT_EQ(event.element.qp, target.get());
}

TEST_F(ExtendedConnection, AQueueThatIsGoneIsUnknown) {
  receive(0, 1);
  srqs[0].reset();
  srqs[0] = create_srq(cqs[0].get());  // another number
  ASSERT_EQ(sender->post(request(IBV_WR_SEND, numbers[0])), 0);
  EXPECT_EQ(sender->sent().status, IBV_WC_REM_INV_REQ_ERR);
}

TEST_F(ExtendedConnection, WithoutAReceiveTheSenderWaits) {
  ASSERT_EQ(sender->post(request(IBV_WR_SEND, numbers[0])), 0);
  EXPECT_TRUE(sender->is_quiet());
  receive(0, 3);
  EXPECT_EQ(sender->sent().status, IBV_WC_SUCCESS);
  EXPECT_EQ(received(0).wr_id, 3u);
}

TEST_F(ExtendedConnection, ALongMessageSurvivesTheQueueOfAnother) {
  receive(0, 1, 32'768);
  receive(1, 2, 32'768);
  for (const int queue : {1, 0}) {
    ASSERT_EQ(sender->post(request(IBV_WR_SEND, numbers[queue], 20'000)), 0);
    EXPECT_EQ(sender->sent().status, IBV_WC_SUCCESS);
    EXPECT_EQ(received(queue).byte_len, 20'000u);
    srqs[queue].reset();
    cqs[queue].reset();
  }
}

// A message that has taken a receive of a queue which goes then.
TEST_F(ExtendedConnection, AQueueMayGoWhileAMessageArrives) {
  receive(0, 1, 32'768);
  SendRequest broken = request(IBV_WR_SEND, numbers[0], 8192);
  broken.sges.push_back(sender->part(0, 8192));
  broken.sges[1].lkey += 1;
  ASSERT_EQ(sender->post(broken), 0);
  EXPECT_EQ(sender->sent().status, IBV_WC_LOC_PROT_ERR);
  EXPECT_TRUE(sender->is_quiet());
  srqs[0].reset();
  cqs[0].reset();
  EXPECT_EQ(move_to(target.get(), IBV_QPS_ERR), 0);
}

TEST_F(ExtendedConnection, ATargetPostsNothing) {
  SendRequest send = request(IBV_WR_SEND, numbers[0]);
  ibv_send_wr* bad_send = nullptr;
  EXPECT_EQ(ibv_post_send(target.get(), send.get(), &bad_send), EINVAL);
  ReceiveRequest receive({});
  ibv_recv_wr* bad = nullptr;
  EXPECT_EQ(ibv_post_recv(target.get(), receive.get(), &bad), EINVAL);
  EXPECT_EQ(ibv_post_recv(sender->qp(), receive.get(), &bad), EINVAL);
}

TEST_F(ExtendedConnection, ADomainInUseStays) {
  EXPECT_EQ(ibv_close_xrcd(domain.get()), EBUSY);
  EXPECT_EQ(ibv_destroy_cq(cqs[0].get()), EBUSY);
}

TEST_F(ExtendedConnection, OnlyAQueueForThisHasANumber) {
  ibv_srq_init_attr plain{nullptr, {1, 1, 0}};
  const Owned<ibv_srq> srq(ibv_create_srq(pd.get(), &plain));
  std::uint32_t number = 0;
  EXPECT_NE(ibv_get_srq_num(srq.get(), &number), 0);
  EXPECT_NE(numbers[0], numbers[1]);
}

}  // namespace
}  // namespace weft::verbs_conformance
