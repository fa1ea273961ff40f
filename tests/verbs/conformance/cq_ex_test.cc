// SPDX-License-Identifier: BSD-2-Clause
// What do extended completion queues add? (ibv_create_cq_ex(3))
#include <cerrno>
#include <ctime>

#include "support/end.h"

namespace weft::verbs_conformance {
namespace {

Owned<ibv_cq> create(ibv_context* context, const ibv_cq_init_attr_ex& wanted) {
  ibv_cq_init_attr_ex attributes = wanted;
  ibv_cq_ex* const made = ibv_create_cq_ex(context, &attributes);
  return Owned<ibv_cq>(made != nullptr ? ibv_cq_ex_to_cq(made) : nullptr);
}

TEST(ExtendedQueue, RefusesWhatItDoesNotKnow) {
  const auto context = open_device();
  ibv_cq_init_attr_ex wanted{};
  wanted.cqe = 4;
  EXPECT_NE(create(context.get(), wanted), nullptr);
  ibv_cq_init_attr_ex field = wanted;
  field.wc_flags = std::uint64_t{1} << 40;
  EXPECT_EQ(create(context.get(), field), nullptr);
  ibv_cq_init_attr_ex mask = wanted;
  mask.comp_mask = 1u << 30;
  EXPECT_EQ(create(context.get(), mask), nullptr);
  ibv_cq_init_attr_ex flag = wanted;
  flag.comp_mask = IBV_CQ_INIT_ATTR_MASK_FLAGS;
  flag.flags = 1u << 30;
  EXPECT_EQ(create(context.get(), flag), nullptr);
  for (const std::uint32_t entries : {0u, 1'048'577u, ~0u}) {
    ibv_cq_init_attr_ex size = wanted;
    size.cqe = entries;
    EXPECT_EQ(create(context.get(), size), nullptr) << entries;
  }
}

// A queue pair over an extended queue, connected to itself.
class ExtendedPolling : public testing::Test {
 protected:
  void make(std::uint64_t fields, std::uint32_t entries = 64, std::uint32_t flags = 0) {
    ibv_cq_init_attr_ex wanted{};
    wanted.cqe = entries;
    wanted.wc_flags = fields;
    wanted.comp_mask = IBV_CQ_INIT_ATTR_MASK_FLAGS;
    wanted.flags = flags;
    queue = create(end.context(), wanted);
    ASSERT_NE(queue, nullptr);
    cq = reinterpret_cast<ibv_cq_ex*>(queue.get());
    ibv_qp_init_attr attributes = reliable_setup(queue.get(), {64, 64, 1, 1, 0});
    attributes.sq_sig_all = 1;
    qp.reset(ibv_create_qp(end.pd(), &attributes));
    ASSERT_NE(qp, nullptr);
    ibv_qp_attr usual = end.usual();
    usual.dest_qp_num = qp->qp_num;
    ASSERT_EQ(move_to(qp.get(), IBV_QPS_INIT, usual), 0);
    ASSERT_EQ(move_to(qp.get(), IBV_QPS_RTR, usual), 0);
    ASSERT_EQ(move_to(qp.get(), IBV_QPS_RTS, usual), 0);
  }
  void exchange() {
    ReceiveRequest receive({end.part(4096, 64)}, 5);
    ibv_recv_wr* bad_receive = nullptr;
    ASSERT_EQ(ibv_post_recv(qp.get(), receive.get(), &bad_receive), 0);
    SendRequest send(IBV_WR_SEND_WITH_IMM, {end.part(0, 10)}, 6);
    send.wr.imm_data = 0x0102'0304;
    ibv_send_wr* bad_send = nullptr;
    ASSERT_EQ(ibv_post_send(qp.get(), send.get(), &bad_send), 0);
  }
  int start() {
    ibv_poll_cq_attr none{};
    int error = ENOENT;
    EXPECT_TRUE(holds_in_time([&] {
      error = ibv_start_poll(cq, &none);
      return error != ENOENT;
    }));
    return error;
  }

  End end;
  Owned<ibv_cq> queue;
  ibv_cq_ex* cq = nullptr;
  Owned<ibv_qp> qp;
};

TEST_F(ExtendedPolling, ReadsTheFieldsOneByOne) {
  make(std::uint64_t{IBV_WC_STANDARD_FLAGS} | std::uint64_t{IBV_WC_EX_WITH_COMPLETION_TIMESTAMP} |
       std::uint64_t{IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK});
  exchange();
  bool received = false;
  bool sent = false;
  while (!received || !sent) {
    ASSERT_EQ(start(), 0);
    do {
      EXPECT_EQ(cq->status, IBV_WC_SUCCESS);
      EXPECT_EQ(ibv_wc_read_qp_num(cq), qp->qp_num);
      EXPECT_NE(ibv_wc_read_completion_ts(cq), 0u);
      const auto now = static_cast<std::uint64_t>(std::time(nullptr)) * 1'000'000'000;
      EXPECT_NEAR(static_cast<double>(ibv_wc_read_completion_wallclock_ns(cq)),
                  static_cast<double>(now), 3600e9);
      if (cq->wr_id == 6) {
        sent = true;
        EXPECT_EQ(ibv_wc_read_opcode(cq), IBV_WC_SEND);
        continue;
      }
      received = true;
      EXPECT_EQ(cq->wr_id, 5u);
      EXPECT_EQ(ibv_wc_read_opcode(cq), IBV_WC_RECV);
      EXPECT_EQ(ibv_wc_read_byte_len(cq), 10u);
      EXPECT_EQ(ibv_wc_read_wc_flags(cq), static_cast<unsigned>(IBV_WC_WITH_IMM));
      EXPECT_EQ(ibv_wc_read_imm_data(cq), 0x0102'0304u);
      EXPECT_EQ(ibv_wc_read_src_qp(cq), qp->qp_num);
      EXPECT_EQ(ibv_wc_read_slid(cq), 0u);
      EXPECT_EQ(ibv_wc_read_sl(cq), 0);
      EXPECT_EQ(ibv_wc_read_dlid_path_bits(cq), 0);
    } while (ibv_next_poll(cq) == 0);
    ibv_end_poll(cq);
  }
  ibv_poll_cq_attr none{};
  EXPECT_EQ(ibv_start_poll(cq, &none), ENOENT);
}

TEST_F(ExtendedPolling, HandsOutErrorsToo) {
  make(0);
  ASSERT_EQ(move_to(qp.get(), IBV_QPS_ERR), 0);
  exchange();
  ASSERT_EQ(start(), 0);
  EXPECT_EQ(cq->status, IBV_WC_WR_FLUSH_ERR);
  EXPECT_EQ(ibv_next_poll(cq), 0);
  EXPECT_EQ(cq->status, IBV_WC_WR_FLUSH_ERR);
  EXPECT_EQ(ibv_next_poll(cq), ENOENT);
  ibv_end_poll(cq);
}

TEST_F(ExtendedPolling, RefusesUnknownAttributesOfAPoll) {
  make(0);
  ibv_poll_cq_attr unknown{};
  unknown.comp_mask = 1;
  EXPECT_EQ(ibv_start_poll(cq, &unknown), EINVAL);
}

TEST_F(ExtendedPolling, MayIgnoreAnOverrun) {
  make(0, 2, IBV_CREATE_CQ_ATTR_IGNORE_OVERRUN);
  for (int i = 0; i < 8; ++i) exchange();
  EXPECT_FALSE(next_event(end.context(), std::chrono::milliseconds(50)));
  ibv_qp_attr attributes{};
  ibv_qp_init_attr initial{};
  ASSERT_EQ(ibv_query_qp(qp.get(), &attributes, IBV_QP_STATE, &initial), 0);
  EXPECT_EQ(attributes.qp_state, IBV_QPS_RTS);
}

TEST_F(ExtendedPolling, IsPolledByTheOldCallToo) {
  make(IBV_WC_EX_WITH_BYTE_LEN, 64, IBV_CREATE_CQ_ATTR_SINGLE_THREADED);
  exchange();
  int count = 0;
  EXPECT_TRUE(holds_in_time([&] {
    ibv_wc wc{};
    count += ibv_poll_cq(queue.get(), 1, &wc);
    return count == 2;
  }));
}

TEST_F(ExtendedPolling, ModerationIsAnUpperLimit) {
  make(0);
  ibv_modify_cq_attr attributes{};
  attributes.attr_mask = IBV_CQ_ATTR_MODERATE;
  attributes.moderate = {8, 100};
  EXPECT_EQ(ibv_modify_cq(queue.get(), &attributes), 0);
  attributes.attr_mask = 1u << 5;
  EXPECT_EQ(ibv_modify_cq(queue.get(), &attributes), EINVAL);
}

}  // namespace
}  // namespace weft::verbs_conformance
