// SPDX-License-Identifier: BSD-2-Clause
// Are the limits of the device reached, and is one more refused? (ibv_query_device(3))
#include <cerrno>
#include <cstring>

#include "support/end.h"

namespace weft::verbs_conformance {
namespace {

constexpr std::uint32_t kRequests = 16'384;

class Limits : public testing::Test {
 protected:
  Limits() : context(open_device()), pd(ibv_alloc_pd(context.get())) {
    cq.reset(ibv_create_cq(context.get(), 65'536, nullptr, nullptr, 0));
  }
  Owned<ibv_qp> create(const ibv_qp_cap& capacities, ibv_qp_type type = IBV_QPT_RC) {
    ibv_qp_init_attr wanted{};
    wanted.send_cq = wanted.recv_cq = cq.get();
    wanted.cap = capacities;
    wanted.qp_type = type;
    Owned<ibv_qp> made(ibv_create_qp(pd.get(), &wanted));
    granted = wanted.cap;
    return made;
  }
  Owned<ibv_context> context;
  Owned<ibv_pd> pd;
  Owned<ibv_cq> cq;
  ibv_qp_cap granted{};
};

TEST_F(Limits, AreThoseThatTheDeviceStates) {
  ibv_device_attr device{};
  ASSERT_EQ(ibv_query_device(context.get(), &device), 0);
  EXPECT_EQ(device.max_qp_wr, static_cast<int>(kRequests));
  EXPECT_EQ(device.max_srq_wr, static_cast<int>(kRequests));
  EXPECT_EQ(device.max_cqe, 1'048'576);
  EXPECT_EQ(device.max_sge, 16);
  EXPECT_EQ(device.max_srq_sge, 16);
  EXPECT_EQ(device.max_qp_rd_atom, 128);
  EXPECT_EQ(device.max_qp_init_rd_atom, 128);
}

TEST_F(Limits, OfCapacitiesRefuseOneMore) {
  const ibv_qp_cap most{kRequests, kRequests, 16, 16, 512};
  ASSERT_NE(create(most), nullptr);
  for (auto member : {&ibv_qp_cap::max_send_wr, &ibv_qp_cap::max_recv_wr, &ibv_qp_cap::max_send_sge,
                      &ibv_qp_cap::max_recv_sge, &ibv_qp_cap::max_inline_data}) {
    ibv_qp_cap more = most;
    ++(more.*member);
    errno = 0;
    EXPECT_EQ(create(more), nullptr);
    EXPECT_EQ(errno, EINVAL);
  }
}

TEST_F(Limits, AtLeast64BytesOfInlineAreGrantedAndWrittenBack) {
  for (const std::uint32_t wanted : {0u, 1u, 63u, 64u, 65u, 512u}) {
    ASSERT_NE(create({1, 1, 1, 1, wanted}), nullptr);
    EXPECT_GE(granted.max_inline_data, std::max(wanted, 64u));
  }
}

TEST_F(Limits, QueuesMayHoldNothing) {
  const auto qp = create({0, 0, 0, 0, 0});
  ASSERT_NE(qp, nullptr);
  EXPECT_GE(granted.max_inline_data, 64u);
}

TEST_F(Limits, ReceivesUpToTheLimitAndNoMore) {
  EndSetup setup;
  setup.capacities = {1, kRequests, 1, 1, 0};
  setup.entries = 65'536;
  End end(setup);
  ASSERT_EQ(end.to_init(end.usual()), 0);
  for (std::uint32_t i = 0; i < kRequests; ++i) ASSERT_EQ(end.receive(8, i), 0);
  EXPECT_EQ(end.receive(8), ENOMEM);
  ASSERT_EQ(end.to_error(), 0);
  for (std::uint32_t i = 0; i < kRequests; ++i) ASSERT_EQ(end.received().wr_id, i);
}

TEST_F(Limits, SendsUpToTheLimitAndNoMore) {
  EndSetup setup;
  setup.capacities = {kRequests, kRequests, 1, 1, 0};
  setup.entries = 65'536;
  Pair two(setup);
  for (std::uint32_t i = 0; i < kRequests; ++i) ASSERT_EQ(two.b.receive(8, i), 0);
  for (std::uint32_t i = 0; i < kRequests; ++i) ASSERT_EQ(two.a.send(8, i), 0);
  EXPECT_EQ(two.a.send(8), ENOMEM);
  for (std::uint32_t i = 0; i < kRequests; ++i) {
    const ibv_wc wc = two.a.sent();
    ASSERT_EQ(wc.status, IBV_WC_SUCCESS);
    ASSERT_EQ(wc.wr_id, i);
    ASSERT_EQ(two.b.received().wr_id, i);
  }
  EXPECT_EQ(two.a.send(8), 0);
}

// Each post in ERR is a completion at once.
TEST_F(Limits, CompletionsUpToTheLimitAndNoMore) {
  EndSetup setup;
  setup.entries = 65'536;
  End end(setup);
  ASSERT_EQ(end.to_init(end.usual()), 0);
  ASSERT_EQ(end.to_error(), 0);
  for (std::uint32_t i = 0; i < 65'536; ++i) ASSERT_EQ(end.receive(8, i), 0);
  EXPECT_FALSE(next_event(end.context(), std::chrono::milliseconds(0)));
  ASSERT_EQ(end.receive(8), 0);
  EXPECT_EQ(await_event(end.context()).event_type, IBV_EVENT_CQ_ERR);
  for (std::uint32_t i = 0; i < 65'536; ++i) ASSERT_EQ(end.received().wr_id, i);
}

TEST_F(Limits, SixteenEntriesAreGatheredAndScattered) {
  EndSetup setup;
  setup.capacities = {4, 4, 16, 16, 512};
  Pair two(setup);
  for (std::size_t i = 0; i < 4096; ++i) two.a.memory()[i] = static_cast<std::byte>(i * 7 + 1);
  std::vector<ibv_sge> out;
  std::vector<ibv_sge> in;
  for (std::size_t i = 0; i < 16; ++i) {
    out.push_back(two.a.part((15 - i) * 32, 32));
    in.push_back(two.b.part(i * 100, i == 15 ? 512 : 31));
  }
  for (const bool copied : {false, true}) {
    std::memset(two.b.memory(), 0, 4096);
    ASSERT_EQ(two.b.receive(ReceiveRequest(in)), 0);
    SendRequest request(IBV_WR_SEND, out);
    if (copied) request.flagged(IBV_SEND_INLINE);
    ASSERT_EQ(two.a.post(request), 0);
    EXPECT_EQ(two.a.sent().status, IBV_WC_SUCCESS);
    EXPECT_EQ(two.b.received().byte_len, 512u);
    std::size_t at = 0;
    for (std::size_t i = 0; i < 16; ++i) {
      for (std::size_t k = 0; k < in[i].length && at < 512; ++k, ++at) {
        const std::size_t from = (15 - at / 32) * 32 + at % 32;
        ASSERT_EQ(two.b.memory()[i * 100 + k], two.a.memory()[from]) << at;
      }
    }
  }
}

TEST_F(Limits, ReadsOutstandingUpToTheLimit) {
  ibv_qp_attr many = usual_pair_attributes();
  many.max_rd_atomic = many.max_dest_rd_atomic = 128;
  EndSetup setup;
  setup.capacities = {512, 1, 1, 1, 0};
  setup.entries = 1024;
  Pair two(setup, many, many);
  std::vector<SendRequest> reads(
      512, SendRequest(IBV_WR_RDMA_READ, {two.a.part(0, 2000)}).at(two.b.place(0)));
  ibv_send_wr* next = nullptr;
  for (std::size_t i = reads.size(); i-- != 0;) {
    reads[i].wr.wr_id = i;
    next = reads[i].get(next);
  }
  ibv_send_wr* bad = nullptr;
  ASSERT_EQ(ibv_post_send(two.a.qp(), next, &bad), 0);
  for (std::size_t i = 0; i < reads.size(); ++i) {
    const ibv_wc wc = two.a.sent();
    ASSERT_EQ(wc.status, IBV_WC_SUCCESS);
    EXPECT_EQ(wc.wr_id, i);
    EXPECT_EQ(wc.byte_len, 2000u);
  }
}

}  // namespace
}  // namespace weft::verbs_conformance
