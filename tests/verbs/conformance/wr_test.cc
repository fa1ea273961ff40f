// SPDX-License-Identifier: BSD-2-Clause
// How are work requests built piece by piece? (ibv_wr_start(3))
#include <array>
#include <cerrno>
#include <cstring>

#include "support/end.h"

namespace weft::verbs_conformance {
namespace {

constexpr std::uint64_t kReliable = IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_SEND_WITH_IMM |
                                    IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM |
                                    IBV_QP_EX_WITH_RDMA_READ | IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP |
                                    IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD;

Owned<ibv_qp> create(End& end, ibv_qp_type type, std::uint64_t operations) {
  ibv_qp_init_attr_ex wanted{};
  wanted.qp_type = type;
  wanted.send_cq = end.sends();
  wanted.recv_cq = end.receives();
  wanted.cap = {8, 8, 2, 2, 64};
  wanted.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
  wanted.pd = end.pd();
  wanted.send_ops_flags = operations;
  return Owned<ibv_qp>(ibv_create_qp_ex(end.context(), &wanted));
}

void connect(End& end, ibv_qp* qp, std::uint32_t peer) {
  ibv_qp_attr attributes = end.usual();
  attributes.dest_qp_num = peer;
  ASSERT_EQ(move_to(qp, IBV_QPS_INIT, attributes), 0);
  ASSERT_EQ(move_to(qp, IBV_QPS_RTR, attributes), 0);
  ASSERT_EQ(move_to(qp, IBV_QPS_RTS, attributes), 0);
}

// The end `a` has a queue pair that builds requests, `b` the usual one.
class Built : public testing::Test {
 protected:
  Built() : pair(create(a, IBV_QPT_RC, kReliable)) {
    EXPECT_NE(pair, nullptr);
    qp = ibv_qp_to_qp_ex(pair.get());
    EXPECT_NE(qp, nullptr);
    connect(a, pair.get(), b.qp()->qp_num);
    b.connect(pair->qp_num);
    a.partner_with(b);
    b.partner_with(a);
  }
  void begin(std::uint64_t id) {
    qp->wr_id = id;
    qp->wr_flags = IBV_SEND_SIGNALED;
  }
  void add_send(std::uint64_t id, std::size_t length = 8) {
    begin(id);
    ibv_wr_send(qp);
    const ibv_sge entry = a.part(0, length);
    ibv_wr_set_sge(qp, entry.lkey, entry.addr, entry.length);
  }
  ibv_wc sent() {
    const ibv_wc wc = a.sent();
    EXPECT_EQ(wc.status, IBV_WC_SUCCESS);
    return wc;
  }
  End a;
  End b;
  Owned<ibv_qp> pair;
  ibv_qp_ex* qp = nullptr;
};

TEST_F(Built, RequestsOfEachOperation) {
  for (std::uint64_t id = 0; id < 3; ++id) ASSERT_EQ(b.receive(64, id), 0);
  const std::uint64_t forty = 40;
  std::memcpy(b.memory() + 8192, &forty, 8);  // away from the receives
  const RemotePlace there = b.place(8192);
  const ibv_sge result = a.part(128, 8);
  ibv_wr_start(qp);
  add_send(1);
  begin(2);
  ibv_wr_send_imm(qp, 0x0102'0304);
  ibv_wr_set_inline_data(qp, a.memory(), 4);
  begin(3);
  ibv_wr_atomic_fetch_add(qp, there.key, there.address, 2);
  ibv_wr_set_sge(qp, result.lkey, result.addr, result.length);
  begin(4);
  ibv_wr_atomic_cmp_swp(qp, there.key, there.address, 42, 7);
  ibv_wr_set_sge(qp, result.lkey, result.addr + 8, result.length);
  begin(5);
  ibv_wr_rdma_write(qp, there.key, there.address + 64);
  std::array<ibv_data_buf, 2> pieces{ibv_data_buf{a.memory(), 3}, ibv_data_buf{a.memory() + 3, 5}};
  ibv_wr_set_inline_data_list(qp, pieces.size(), pieces.data());
  begin(6);
  ibv_wr_rdma_write_imm(qp, there.key, there.address + 128, 0x0506'0708);
  std::array<ibv_sge, 2> entries{a.part(0, 10), a.part(10, 20)};
  ibv_wr_set_sge_list(qp, entries.size(), entries.data());
  begin(7);
  ibv_wr_rdma_read(qp, there.key, there.address);
  ibv_wr_set_sge(qp, result.lkey, result.addr + 16, result.length);
  ASSERT_EQ(ibv_wr_complete(qp), 0);
  for (std::uint64_t id = 1; id <= 7; ++id) EXPECT_EQ(sent().wr_id, id);
  std::uint64_t values[3]{};
  std::memcpy(values, a.memory() + 128, sizeof values);
  EXPECT_EQ(values[0], 40u);
  EXPECT_EQ(values[1], 42u);
  EXPECT_EQ(values[2], 7u);
  EXPECT_EQ(b.received().byte_len, 8u);
  ibv_wc wc = b.received();
  EXPECT_EQ(wc.byte_len, 4u);
  EXPECT_EQ(wc.imm_data, 0x0102'0304u);
  wc = b.received();
  EXPECT_EQ(wc.byte_len, 30u);
  EXPECT_EQ(wc.imm_data, 0x0506'0708u);
  EXPECT_EQ(wc.opcode, IBV_WC_RECV_RDMA_WITH_IMM);
}

TEST_F(Built, RequestsThatAreAbortedAreNotPosted) {
  ASSERT_EQ(b.receive(64), 0);
  ibv_wr_start(qp);
  add_send(1);
  ibv_wr_abort(qp);
  EXPECT_TRUE(a.is_quiet());
  ibv_wr_start(qp);
  add_send(2);
  ASSERT_EQ(ibv_wr_complete(qp), 0);
  EXPECT_EQ(sent().wr_id, 2u);
}

// All of a batch are posted, or none.
TEST_F(Built, ABatchThatDoesNotFitIsNotPosted) {
  ibv_wr_start(qp);
  for (std::uint64_t id = 0; id < 9; ++id) add_send(id);
  EXPECT_EQ(ibv_wr_complete(qp), ENOMEM);
  EXPECT_TRUE(a.is_quiet());
  for (std::uint64_t id = 0; id < 8; ++id) ASSERT_EQ(b.receive(64, id), 0);
  ibv_wr_start(qp);
  for (std::uint64_t id = 0; id < 8; ++id) add_send(id);
  ASSERT_EQ(ibv_wr_complete(qp), 0);
  for (std::uint64_t id = 0; id < 8; ++id) EXPECT_EQ(sent().wr_id, id);
}

TEST_F(Built, ABatchWithAnInvalidRequestIsNotPosted) {
  for (std::uint64_t id = 0; id < 4; ++id) ASSERT_EQ(b.receive(1024, id), 0);
  const auto refused = [&](auto second) {
    ibv_wr_start(qp);
    add_send(1);
    begin(2);
    second();
    EXPECT_EQ(ibv_wr_complete(qp), EINVAL);
    EXPECT_TRUE(a.is_quiet());
    EXPECT_TRUE(b.is_quiet());
  };
  refused([&] {
    ibv_wr_send(qp);
    ibv_wr_set_inline_data(qp, a.memory(), 65);
  });
  refused([&] {
    ibv_wr_send(qp);
    ibv_wr_set_inline_data(qp, a.memory(), 513);
  });
  refused([&] {
    ibv_wr_send(qp);
    const std::vector<ibv_sge> entries(3, a.part(0, 8));
    ibv_wr_set_sge_list(qp, entries.size(), entries.data());
  });
  refused([&] {
    ibv_wr_rdma_read(qp, 1, 1);
    ibv_wr_set_inline_data(qp, a.memory(), 8);
  });
}

TEST_F(Built, AnEntryWithoutARequestIsInvalid) {
  ibv_wr_start(qp);
  ibv_wr_set_sge(qp, 1, 1, 1);
  EXPECT_EQ(ibv_wr_complete(qp), EINVAL);
}

TEST_F(Built, ABatchMayBeEmpty) {
  ibv_wr_start(qp);
  EXPECT_EQ(ibv_wr_complete(qp), 0);
}

TEST_F(Built, RequestsAreRefusedInAWrongState) {
  ASSERT_EQ(ibv_qp_to_qp_ex(b.qp()), nullptr) << "that was created for ibv_post_send(3) alone";
  ASSERT_EQ(move_to(pair.get(), IBV_QPS_RESET), 0);
  ibv_wr_start(qp);
  add_send(1);
  EXPECT_EQ(ibv_wr_complete(qp), EINVAL);
}

TEST_F(Built, OldPostsWorkBesideThem) {
  ASSERT_EQ(b.receive(64), 0);
  SendRequest request(IBV_WR_SEND, {a.part(0, 8)}, 77);
  request.flagged(IBV_SEND_SIGNALED);
  ibv_send_wr* bad = nullptr;
  ASSERT_EQ(ibv_post_send(pair.get(), request.get(), &bad), 0);
  EXPECT_EQ(sent().wr_id, 77u);
}

TEST(Operations, ThatATypeHasNotAreRefused) {
  End end;
  EXPECT_NE(create(end, IBV_QPT_UC, IBV_QP_EX_WITH_RDMA_WRITE), nullptr);
  for (const auto& [type, operation] : {std::pair{IBV_QPT_UC, IBV_QP_EX_WITH_RDMA_READ},
                                        {IBV_QPT_UD, IBV_QP_EX_WITH_RDMA_WRITE},
                                        {IBV_QPT_RC, IBV_QP_EX_WITH_LOCAL_INV},
                                        {IBV_QPT_RC, IBV_QP_EX_WITH_BIND_MW}}) {
    errno = 0;
    EXPECT_EQ(create(end, type, operation), nullptr);
    EXPECT_EQ(errno, EOPNOTSUPP);
  }
}

TEST(Operations, OfDatagramsNameAnAddress) {
  EndSetup datagrams;
  datagrams.type = IBV_QPT_UD;
  End a(datagrams);
  End b(datagrams);
  a.partner_with(b);
  const auto pair = create(a, IBV_QPT_UD, IBV_QP_EX_WITH_SEND);
  ASSERT_NE(pair, nullptr);
  connect(a, pair.get(), 0);
  b.connect(0);
  ibv_ah_attr address = address_of(gid_of(a.context()));
  const Owned<ibv_ah> ah(ibv_create_ah(a.pd(), &address));
  ASSERT_EQ(b.receive(256, 3), 0);
  ibv_qp_ex* const qp = ibv_qp_to_qp_ex(pair.get());
  ibv_wr_start(qp);
  qp->wr_id = 4;
  qp->wr_flags = IBV_SEND_SIGNALED;
  ibv_wr_send(qp);
  const ibv_sge entry = a.part(0, 8);
  ibv_wr_set_sge(qp, entry.lkey, entry.addr, entry.length);
  ibv_wr_set_ud_addr(qp, ah.get(), b.qp()->qp_num, kQueueKey);
  ASSERT_EQ(ibv_wr_complete(qp), 0);
  EXPECT_EQ(a.sent().wr_id, 4u);
  EXPECT_EQ(b.received().wr_id, 3u);
  ibv_wr_start(qp);
  ibv_wr_send(qp);
  EXPECT_EQ(ibv_wr_complete(qp), EINVAL) << "without an address";
}

}  // namespace
}  // namespace weft::verbs_conformance
