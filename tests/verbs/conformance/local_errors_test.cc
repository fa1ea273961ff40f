// SPDX-License-Identifier: BSD-2-Clause
// How does work end that fails at the end that posted it? (IBTA 10.10.2, ibv_poll_cq(3))
#include <sys/mman.h>

#include <cerrno>
#include <cstring>
#include <optional>

#include "support/end.h"

namespace weft::verbs_conformance {
namespace {

// Local errors leave the peer alone: nothing has left for it.
class LocalError : public testing::Test {
 protected:
  void fails(SendRequest request, ibv_wc_status status, std::optional<Reason> reason = {}) {
    ASSERT_EQ(two.b.receive(64, 1), 0);
    ASSERT_EQ(two.a.receive(64, 2), 0);
    request.wr.wr_id = 7;
    ASSERT_EQ(two.a.post(request), 0);
    ASSERT_EQ(two.a.send(8, 8), 0);
    const ibv_wc failed = two.a.sent();
    EXPECT_EQ(failed.status, status);
    EXPECT_EQ(failed.wr_id, 7u);
    if (reason) {
      EXPECT_EQ(failed.vendor_err, *reason);
    }
    EXPECT_EQ(failed.qp_num, two.a.qp()->qp_num);
    EXPECT_EQ(two.a.state(), IBV_QPS_ERR);
    const ibv_wc flushed = two.a.sent();
    EXPECT_EQ(flushed.status, IBV_WC_WR_FLUSH_ERR);
    EXPECT_EQ(flushed.wr_id, 8u);
    EXPECT_EQ(two.a.received().status, IBV_WC_WR_FLUSH_ERR);
    EXPECT_TRUE(two.b.is_quiet());
    EXPECT_EQ(two.b.state(), IBV_QPS_RTS);
  }
  ibv_sge with_key(std::uint32_t key) {
    ibv_sge entry = two.a.part(0, 8);
    entry.lkey = key;
    return entry;
  }
  Pair two;
};

TEST_F(LocalError, UnknownLocalKey) {
  fails({IBV_WR_SEND, {with_key(two.a.mr()->lkey + 1)}}, IBV_WC_LOC_PROT_ERR, kUnknownKey);
}
TEST_F(LocalError, NoLocalKey) {
  fails({IBV_WR_SEND, {with_key(0)}}, IBV_WC_LOC_PROT_ERR, kUnknownKey);
}
TEST_F(LocalError, TheLastLocalKey) {
  fails({IBV_WR_SEND, {with_key(~0u)}}, IBV_WC_LOC_PROT_ERR, kUnknownKey);
}
TEST_F(LocalError, TheKeyOfAnotherProtectionDomain) {
  Owned<ibv_pd> other(ibv_alloc_pd(two.a.context()));
  Owned<ibv_mr> foreign(
      ibv_reg_mr(other.get(), two.a.memory(), End::kBytes, IBV_ACCESS_LOCAL_WRITE));
  fails({IBV_WR_SEND, {with_key(foreign->lkey)}}, IBV_WC_LOC_PROT_ERR, kUnknownKey);
}
TEST_F(LocalError, BytesPastTheEndOfTheRegion) {
  fails({IBV_WR_SEND, {two.a.part(End::kBytes - 4, 8)}}, IBV_WC_LOC_PROT_ERR, kPastEnd);
}
TEST_F(LocalError, BytesBeforeTheRegion) {
  ibv_sge before = two.a.part(0, 8);
  before.addr -= 4;
  fails({IBV_WR_SEND, {before}}, IBV_WC_LOC_PROT_ERR, kBeforeStart);
}
TEST_F(LocalError, OneBadEntryAmongSeveral) {
  fails({IBV_WR_SEND, {two.a.part(0, 8), with_key(0), two.a.part(8, 8)}}, IBV_WC_LOC_PROT_ERR);
}
TEST_F(LocalError, ABadKeyOfAWriteIsFoundBeforeTheRemoteOne) {
  fails(SendRequest(IBV_WR_RDMA_WRITE, {with_key(1)}).at({two.b.place(0).address, 1}),
        IBV_WC_LOC_PROT_ERR);
}
TEST_F(LocalError, AMessageLongerThanThePortCarries) {
  ibv_port_attr port{};
  ASSERT_EQ(ibv_query_port(two.a.context(), 1, &port), 0);
  ibv_sge half = two.a.part(0, 8);
  half.length = port.max_msg_sz / 2 + 1;
  fails({IBV_WR_SEND, {half, half}}, IBV_WC_LOC_LEN_ERR);
}
TEST_F(LocalError, AnAtomicOperationWithAnotherLengthThanEight) {
  std::memset(two.b.memory(), 5, 8);
  fails(SendRequest(IBV_WR_ATOMIC_FETCH_AND_ADD, {two.a.part(0, 4)}).at(two.b.place(0)).operands(1),
        IBV_WC_LOC_LEN_ERR);
  EXPECT_EQ(two.b.memory()[0], std::byte{5}) << "the operation was executed";
}

// The results of these come back to a buffer that may not be written: the peer has done its part.
TEST(ResultBuffer, OfAReadNeedsTheRightToWrite) {
  EndSetup reads_only;
  reads_only.region_rights = 0;
  Pair two(reads_only, {});
  ASSERT_EQ(two.a.read(two.b.place(0), 8, 1), 0);
  EXPECT_EQ(two.a.sent().status, IBV_WC_LOC_PROT_ERR);
  EXPECT_EQ(two.a.state(), IBV_QPS_ERR);
}
TEST(ResultBuffer, OfAnAtomicOperationNeedsTheRightToWrite) {
  EndSetup reads_only;
  reads_only.region_rights = 0;
  Pair two(reads_only, {});
  ASSERT_EQ(two.a.post(SendRequest(IBV_WR_ATOMIC_FETCH_AND_ADD, {two.a.part(0, 8)})
                           .at(two.b.place(0))
                           .operands(1)),
            0);
  EXPECT_EQ(two.a.sent().status, IBV_WC_LOC_PROT_ERR);
  EXPECT_EQ(two.a.state(), IBV_QPS_ERR);
}

// The first completion with an error has the cause; requests before it have ended well.
TEST(ErrorOrder, WorkBeforeTheFailedRequestEndsWell) {
  Pair two;
  for (std::uint64_t id = 0; id < 8; ++id) ASSERT_EQ(two.b.receive(4096, id), 0);
  std::vector<SendRequest> requests(6, SendRequest(IBV_WR_SEND, {two.a.part(0, 3000)}));
  requests[3].sges[0].lkey += 1;
  ibv_send_wr* next = nullptr;
  for (std::size_t i = requests.size(); i-- != 0;) {
    requests[i].wr.wr_id = i;
    next = requests[i].get(next);
  }
  ibv_send_wr* bad = nullptr;
  ASSERT_EQ(ibv_post_send(two.a.qp(), next, &bad), 0);
  for (std::uint64_t id = 0; id < 6; ++id) {
    const ibv_wc wc = two.a.sent();
    EXPECT_EQ(wc.wr_id, id);
    EXPECT_EQ(wc.status, id < 3    ? IBV_WC_SUCCESS
                         : id == 3 ? IBV_WC_LOC_PROT_ERR
                                   : IBV_WC_WR_FLUSH_ERR);
  }
  for (std::uint64_t id = 0; id < 3; ++id) EXPECT_EQ(two.b.received().wr_id, id);
  EXPECT_TRUE(two.b.is_quiet());
}

TEST(ErrorOrder, WorkBeforeAReadThatFailsHereEndsWell) {
  Pair two;
  for (std::uint64_t id = 0; id < 4; ++id) ASSERT_EQ(two.b.receive(4096, id), 0);
  for (std::uint64_t id = 0; id < 3; ++id) ASSERT_EQ(two.a.send(3000, id), 0);
  SendRequest read(IBV_WR_RDMA_READ, {two.a.part(0, 5000)}, 3);
  read.at(two.b.place(0)).sges[0].lkey += 1;
  ASSERT_EQ(two.a.post(read), 0);
  ASSERT_EQ(two.a.send(8, 4), 0);
  for (std::uint64_t id = 0; id < 3; ++id) EXPECT_EQ(two.a.sent().status, IBV_WC_SUCCESS);
  EXPECT_EQ(two.a.sent().status, IBV_WC_LOC_PROT_ERR);
  EXPECT_EQ(two.a.sent().status, IBV_WC_WR_FLUSH_ERR);
}

TEST(ErrorOrder, AnErrorIsReportedOfAnUnsignaledRequest) {
  EndSetup setup;
  setup.all_signaled = false;
  Pair two(setup);
  for (std::uint64_t id = 0; id < 4; ++id) ASSERT_EQ(two.b.receive(64, id), 0);
  ASSERT_EQ(two.a.send(8, 1), 0);
  SendRequest bad(IBV_WR_SEND, {two.a.part(0, 8)}, 2);
  bad.sges[0].lkey += 1;
  ASSERT_EQ(two.a.post(bad), 0);
  ASSERT_EQ(two.a.send(8, 3), 0);
  ibv_wc wc = two.a.sent();
  EXPECT_EQ(wc.wr_id, 2u);
  EXPECT_EQ(wc.status, IBV_WC_LOC_PROT_ERR);
  wc = two.a.sent();
  EXPECT_EQ(wc.wr_id, 3u);
  EXPECT_EQ(wc.status, IBV_WC_WR_FLUSH_ERR);
}

// Keys are looked up whenever bytes are touched.
TEST(LocalKey, MustBeValidAtARetransmission) {
  ibv_qp_attr slow = usual_pair_attributes();
  slow.min_rnr_timer = 0;  // 0.66 s
  Pair two({}, slow, slow);
  ASSERT_EQ(two.a.send(8, 1), 0);
  EXPECT_TRUE(two.a.is_quiet());  // the peer has no receive, and asks to try again
  two.a.deregister();
  ASSERT_EQ(two.b.receive(8), 0);
  EXPECT_EQ(two.a.sent().status, IBV_WC_LOC_PROT_ERR);
  two.a.register_again(kAllRights);
}

TEST(LocalKey, IsNotLookedAtWithoutBytes) {
  Pair two;
  ASSERT_EQ(two.b.receive(8), 0);
  ASSERT_EQ(two.b.receive(8), 0);
  ASSERT_EQ(two.a.post({IBV_WR_SEND, {ibv_sge{12345, 0, 999}}}), 0);
  EXPECT_EQ(two.a.sent().status, IBV_WC_SUCCESS);
  ASSERT_EQ(two.a.post({IBV_WR_SEND, {}}), 0);
  EXPECT_EQ(two.a.sent().status, IBV_WC_SUCCESS);
  EXPECT_EQ(two.b.received().byte_len, 0u);
}

TEST(LocalKey, IsNotLookedAtOfInlineBytes) {
  Pair two;
  ASSERT_EQ(two.b.receive(8), 0);
  std::uint64_t value = 0x1122'3344'5566'7788;
  SendRequest request(IBV_WR_SEND, {ibv_sge{reinterpret_cast<std::uint64_t>(&value), 8, 77}});
  ASSERT_EQ(two.a.post(request.flagged(IBV_SEND_INLINE)), 0);
  value = 0;
  EXPECT_EQ(two.a.sent().status, IBV_WC_SUCCESS);
  EXPECT_EQ(two.b.received().byte_len, 8u);
  std::memcpy(&value, two.b.memory(), 8);
  EXPECT_EQ(value, 0x1122'3344'5566'7788u);
}

TEST(LocalMemory, ThatIsUnmappedEndsItsRequest) {
  const std::size_t length = 8192;
  // Far from where the kernel would map something else in its place.
  void* const far = reinterpret_cast<void*>(0x2000'0000'0000);
  void* const memory =
      ::mmap(far, length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(memory, MAP_FAILED);
  Pair two;
  Owned<ibv_mr> region(ibv_reg_mr(two.a.pd(), memory, length, IBV_ACCESS_LOCAL_WRITE));
  ASSERT_NE(region, nullptr);
  ASSERT_EQ(::munmap(memory, length), 0);
  ASSERT_EQ(two.b.receive(64), 0);
  ASSERT_EQ(two.a.post({IBV_WR_SEND,
                        {ibv_sge{reinterpret_cast<std::uint64_t>(memory), 64, region->lkey}}}),
            0);
  EXPECT_EQ(two.a.sent().status, IBV_WC_LOC_PROT_ERR);
}

}  // namespace
}  // namespace weft::verbs_conformance
