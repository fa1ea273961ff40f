// SPDX-License-Identifier: BSD-2-Clause
// How does work end that the peer refuses, and what does the peer learn of it?
// (IBTA 9.7.4.1, 9.9.3)
#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <optional>

#include "support/end.h"

namespace weft::verbs_conformance {
namespace {

// A refusal ends both queue pairs, in order; the refused request touches no byte.
class Refusal : public testing::Test {
 protected:
  void refused(SendRequest request, ibv_wc_status status, ibv_event_type event,
               std::optional<Reason> reason = {}) {
    std::memset(two.b.memory(), 0x5A, 64);
    std::memset(two.a.memory(), 0xA5, 64);
    ASSERT_EQ(two.b.receive(64, 1), 0);
    ASSERT_EQ(two.b.receive(64, 2), 0);
    request.wr.wr_id = 7;
    ASSERT_EQ(two.a.post(request), 0);
    ASSERT_EQ(two.a.send(8, 8), 0);
    const ibv_wc failed = two.a.sent();
    EXPECT_EQ(failed.status, status);
    EXPECT_EQ(failed.wr_id, 7u);
    if (reason) {
      EXPECT_EQ(failed.vendor_err, refused_by(*reason));
    }
    EXPECT_EQ(two.a.sent().status, IBV_WC_WR_FLUSH_ERR);
    for (std::uint64_t id = 1; id <= 2; ++id) {
      const ibv_wc flushed = two.b.received();
      EXPECT_EQ(flushed.wr_id, id);
      EXPECT_EQ(flushed.status, IBV_WC_WR_FLUSH_ERR);
    }
    EXPECT_EQ(two.a.state(), IBV_QPS_ERR);
    EXPECT_EQ(two.b.state(), IBV_QPS_ERR);
    const ibv_async_event told = await_event(two.b.context());
    EXPECT_EQ(told.event_type, event);
    EXPECT_EQ(told.element.qp, two.b.qp());
    EXPECT_FALSE(next_event(two.b.context(), std::chrono::milliseconds(0)));
    EXPECT_FALSE(next_event(two.a.context(), std::chrono::milliseconds(0)));
    for (int i = 0; i < 64; ++i) {
      ASSERT_EQ(two.b.memory()[i], std::byte{0x5A}) << i;
      ASSERT_EQ(two.a.memory()[i], std::byte{0xA5}) << i;
    }
  }
  SendRequest request(ibv_wr_opcode opcode, const RemotePlace& place) {
    return SendRequest(opcode, {two.a.part(0, 8)}).at(place).operands(1, 2);
  }
  void refused_access(ibv_wr_opcode opcode, const RemotePlace& place, Reason reason) {
    refused(request(opcode, place), IBV_WC_REM_ACCESS_ERR, IBV_EVENT_QP_ACCESS_ERR, reason);
  }
  RemotePlace with_key(std::uint32_t key) { return {two.b.place(0).address, key}; }

  Pair two;
};

class RefusedAccess : public Refusal, public testing::WithParamInterface<ibv_wr_opcode> {};

TEST_P(RefusedAccess, UnknownKey) {
  refused_access(GetParam(), with_key(two.b.mr()->rkey + 1), kUnknownKey);
}
TEST_P(RefusedAccess, KeyZero) { refused_access(GetParam(), with_key(0), kUnknownKey); }
TEST_P(RefusedAccess, KeyOfAnotherProtectionDomain) {
  Owned<ibv_pd> other(ibv_alloc_pd(two.b.context()));
  Owned<ibv_mr> foreign(ibv_reg_mr(other.get(), two.b.memory(), End::kBytes, kAllRights));
  refused_access(GetParam(), with_key(foreign->rkey), kUnknownKey);
}
TEST_P(RefusedAccess, KeyOfARegionThatIsGone) {
  const RemotePlace gone = two.b.place(0);
  two.b.register_again(kAllRights);
  refused_access(GetParam(), gone, kUnknownKey);
}
TEST_P(RefusedAccess, BytesPastTheEnd) {
  refused_access(GetParam(), two.b.place(End::kBytes), kPastEnd);
}
TEST_P(RefusedAccess, BytesBeforeTheStart) {
  refused_access(GetParam(), {two.b.place(0).address - 8, two.b.mr()->rkey}, kBeforeStart);
}
TEST_P(RefusedAccess, TheLastAddresses) {
  const bool wraps = GetParam() == IBV_WR_RDMA_WRITE || GetParam() == IBV_WR_RDMA_READ;
  const std::uint64_t address = ~std::uint64_t{wraps ? 3u : 7u};
  refused_access(GetParam(), {address, two.b.mr()->rkey}, wraps ? kWraps : kPastEnd);
}
TEST_P(RefusedAccess, ARegionWithoutTheRight) {
  unsigned rights = kAllRights;
  if (GetParam() == IBV_WR_RDMA_READ) rights &= ~unsigned{IBV_ACCESS_REMOTE_READ};
  if (GetParam() == IBV_WR_RDMA_WRITE) rights &= ~unsigned{IBV_ACCESS_REMOTE_WRITE};
  if (GetParam() >= IBV_WR_ATOMIC_CMP_AND_SWP) rights &= ~unsigned{IBV_ACCESS_REMOTE_ATOMIC};
  two.b.register_again(rights);
  refused_access(GetParam(), two.b.place(0), kNoRight);
}
INSTANTIATE_TEST_SUITE_P(All, RefusedAccess,
                         testing::Values(IBV_WR_RDMA_WRITE, IBV_WR_RDMA_READ,
                                         IBV_WR_ATOMIC_CMP_AND_SWP, IBV_WR_ATOMIC_FETCH_AND_ADD));

TEST_F(Refusal, AWriteWithImmediateDataAndABadKey) {
  refused(request(IBV_WR_RDMA_WRITE_WITH_IMM, with_key(1)), IBV_WC_REM_ACCESS_ERR,
          IBV_EVENT_QP_ACCESS_ERR);
}

// The remote key is looked at first: nothing comes back for the bad local one.
TEST_F(Refusal, AReadWithABadRemoteAndABadLocalKey) {
  SendRequest read = request(IBV_WR_RDMA_READ, with_key(1));
  read.sges[0].lkey = 1;
  refused(read, IBV_WC_REM_ACCESS_ERR, IBV_EVENT_QP_ACCESS_ERR);
}

TEST_F(Refusal, AnAtomicOperationOnAnUnalignedAddress) {
  refused(request(IBV_WR_ATOMIC_FETCH_AND_ADD, two.b.place(4)), IBV_WC_REM_INV_REQ_ERR,
          IBV_EVENT_QP_REQ_ERR);
}

TEST_F(Refusal, AnUnalignedAddressCountsBeforeTheKey) {
  refused(request(IBV_WR_ATOMIC_CMP_AND_SWP, {two.b.place(4).address, 1}), IBV_WC_REM_INV_REQ_ERR,
          IBV_EVENT_QP_REQ_ERR);
}

// A long write is refused as a whole, by its first packet.
TEST_F(Refusal, AWriteOfManyPacketsTouchesNoByte) {
  std::memset(two.b.memory() + End::kBytes - 4096, 0x11, 4096);
  refused(SendRequest(IBV_WR_RDMA_WRITE, {two.a.part(0, 5000)}).at(two.b.place(End::kBytes - 4096)),
          IBV_WC_REM_ACCESS_ERR, IBV_EVENT_QP_ACCESS_ERR);
  for (std::size_t i = End::kBytes - 4096; i < End::kBytes; ++i) {
    ASSERT_EQ(two.b.memory()[i], std::byte{0x11});
  }
}

// Rights of the queue pair (qp_access_flags).
class RightOfTheQueuePair : public testing::TestWithParam<ibv_wr_opcode> {};

TEST_P(RightOfTheQueuePair, IsNeededBesideTheRegions) {
  ibv_qp_attr strict = usual_pair_attributes();
  unsigned right = IBV_ACCESS_REMOTE_READ;
  if (GetParam() == IBV_WR_RDMA_WRITE) right = IBV_ACCESS_REMOTE_WRITE;
  if (GetParam() >= IBV_WR_ATOMIC_CMP_AND_SWP) right = IBV_ACCESS_REMOTE_ATOMIC;
  strict.qp_access_flags &= ~right;
  Pair two({}, usual_pair_attributes(), strict);
  ASSERT_EQ(two.a.post(SendRequest(GetParam(), {two.a.part(0, 8)}).at(two.b.place(0))), 0);
  const ibv_wc refused = two.a.sent();
  EXPECT_EQ(refused.status, IBV_WC_REM_INV_REQ_ERR);
  EXPECT_EQ(refused.vendor_err, peers_name_rules() ? std::uint32_t{kNotServed} : EREMOTEIO);
  EXPECT_EQ(await_event(two.b.context()).event_type, IBV_EVENT_QP_REQ_ERR);
  EXPECT_EQ(two.b.state(), IBV_QPS_ERR);
}

TEST_P(RightOfTheQueuePair, MayBeGivenInReadyToSend) {
  ibv_qp_attr strict = usual_pair_attributes();
  strict.qp_access_flags = 0;
  Pair two({}, usual_pair_attributes(), strict);
  ibv_qp_attr more{};
  more.qp_access_flags = kRemoteRights;
  ASSERT_EQ(ibv_modify_qp(two.b.qp(), &more, IBV_QP_ACCESS_FLAGS), 0);
  ASSERT_EQ(two.a.post(SendRequest(GetParam(), {two.a.part(0, 8)}).at(two.b.place(0))), 0);
  EXPECT_EQ(two.a.sent().status, IBV_WC_SUCCESS);
}

INSTANTIATE_TEST_SUITE_P(All, RightOfTheQueuePair,
                         testing::Values(IBV_WR_RDMA_WRITE, IBV_WR_RDMA_READ,
                                         IBV_WR_ATOMIC_FETCH_AND_ADD));

// Neither key nor address is validated without bytes (IBTA 9.7.4.1.1).
TEST(ZeroLength, NeedsNoKey) {
  Pair two;
  for (const auto opcode : {IBV_WR_RDMA_WRITE, IBV_WR_RDMA_READ}) {
    ASSERT_EQ(two.a.post(SendRequest(opcode, {}).at({0x1234, 0x5678})), 0);
    EXPECT_EQ(two.a.sent().status, IBV_WC_SUCCESS);
  }
}

// Errors of the receive that a message takes: the receive says which, its peer learns less.
class FailedReceive : public testing::Test {
 protected:
  void fails(const ibv_sge& buffer, ibv_wc_status here, ibv_wc_status there) {
    ASSERT_EQ(two.b.receive(ReceiveRequest({buffer}, 1)), 0);
    ASSERT_EQ(two.b.receive(64, 2), 0);
    ASSERT_EQ(two.a.send(64, 7), 0);
    ASSERT_EQ(two.a.send(64, 8), 0);
    EXPECT_EQ(two.a.sent().status, there);
    EXPECT_EQ(two.a.sent().status, IBV_WC_WR_FLUSH_ERR);
    const ibv_wc failed = two.b.received();
    EXPECT_EQ(failed.status, here);
    EXPECT_EQ(failed.wr_id, 1u);
    const ibv_wc flushed = two.b.received();
    EXPECT_EQ(flushed.status, IBV_WC_WR_FLUSH_ERR);
    EXPECT_EQ(flushed.wr_id, 2u);
    EXPECT_EQ(two.b.state(), IBV_QPS_ERR);
    EXPECT_FALSE(next_event(two.b.context(), std::chrono::milliseconds(0)))
        << "the completion says it";
  }
  Pair two;
};

TEST_F(FailedReceive, TooShort) {
  fails(two.b.part(0, 63), IBV_WC_LOC_LEN_ERR, IBV_WC_REM_INV_REQ_ERR);
}
TEST_F(FailedReceive, UnknownLocalKey) {
  ibv_sge buffer = two.b.part(0, 64);
  buffer.lkey += 1;
  fails(buffer, IBV_WC_LOC_PROT_ERR, IBV_WC_REM_OP_ERR);
}
TEST_F(FailedReceive, BytesPastTheEndOfTheRegion) {
  fails(two.b.part(End::kBytes - 32, 64), IBV_WC_LOC_PROT_ERR, IBV_WC_REM_OP_ERR);
}
TEST_F(FailedReceive, RegionOfAnotherProtectionDomain) {
  Owned<ibv_pd> other(ibv_alloc_pd(two.b.context()));
  Owned<ibv_mr> foreign(ibv_reg_mr(other.get(), two.b.memory(), 64, IBV_ACCESS_LOCAL_WRITE));
  ibv_sge buffer = two.b.part(0, 64);
  buffer.lkey = foreign->lkey;
  fails(buffer, IBV_WC_LOC_PROT_ERR, IBV_WC_REM_OP_ERR);
}
TEST_F(FailedReceive, RegionWithoutTheRightToWrite) {
  two.b.register_again(IBV_ACCESS_REMOTE_READ);
  fails(two.b.part(0, 64), IBV_WC_LOC_PROT_ERR, IBV_WC_REM_OP_ERR);
}

TEST(Receive, MayBeLongerThanItsRegionWhereTheMessageIsNot) {
  Pair two;
  ASSERT_EQ(two.b.receive(ReceiveRequest({two.b.part(End::kBytes - 32, 64)})), 0);
  ASSERT_EQ(two.a.send(32), 0);
  EXPECT_EQ(two.b.received().status, IBV_WC_SUCCESS);
}

// More reads at once than the target grants: its initiator breaks the agreement.
TEST(ReadLimit, OfTheTargetEndsTheConnection) {
  ibv_qp_attr few = usual_pair_attributes();
  few.max_dest_rd_atomic = 1;
  Pair two({}, usual_pair_attributes(), few);
  std::vector<SendRequest> reads(
      16, SendRequest(IBV_WR_RDMA_READ, {two.a.part(0, 8)}).at(two.b.place(0)));
  ibv_send_wr* next = nullptr;
  for (auto read = reads.rbegin(); read != reads.rend(); ++read) next = read->get(next);
  ibv_send_wr* bad = nullptr;
  ASSERT_EQ(ibv_post_send(two.a.qp(), next, &bad), 0);
  std::vector<ibv_wc_status> statuses;
  for (std::size_t i = 0; i < reads.size(); ++i) statuses.push_back(two.a.sent().status);
  const auto failed = std::find_if(statuses.begin(), statuses.end(),
                                   [](ibv_wc_status each) { return each != IBV_WC_SUCCESS; });
  ASSERT_NE(failed, statuses.end());
  EXPECT_EQ(*failed, IBV_WC_REM_INV_REQ_ERR);
  EXPECT_TRUE(std::all_of(failed + 1, statuses.end(),
                          [](ibv_wc_status each) { return each == IBV_WC_WR_FLUSH_ERR; }));
  EXPECT_EQ(await_event(two.b.context()).event_type, IBV_EVENT_QP_REQ_ERR);
}

TEST(ReadLimit, OfNoneRefusesReads) {
  ibv_qp_attr none = usual_pair_attributes();
  none.max_rd_atomic = 0;
  Pair two({}, none, usual_pair_attributes());
  ASSERT_EQ(two.a.read(two.b.place(0), 8), 0);
  EXPECT_EQ(two.a.sent().status, IBV_WC_LOC_QP_OP_ERR);
}

TEST(RemoteMemory, ThatIsUnmappedIsAnOperationalError) {
  const std::size_t length = 8192;
  for (const auto opcode : {IBV_WR_RDMA_WRITE, IBV_WR_RDMA_READ, IBV_WR_ATOMIC_FETCH_AND_ADD}) {
    // Far from where the kernel would map something else in its place.
    void* const far = reinterpret_cast<void*>(0x2000'0000'0000);
    void* const memory =
        ::mmap(far, length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    ASSERT_NE(memory, MAP_FAILED);
    Pair two;
    Owned<ibv_mr> region(ibv_reg_mr(two.b.pd(), memory, length, kAllRights));
    ASSERT_NE(region, nullptr);
    ASSERT_EQ(::munmap(memory, length), 0);
    ASSERT_EQ(two.a.post(SendRequest(opcode, {two.a.part(0, 8)})
                             .at({reinterpret_cast<std::uint64_t>(memory), region->rkey})),
              0);
    EXPECT_EQ(two.a.sent().status, IBV_WC_REM_OP_ERR);
    EXPECT_EQ(await_event(two.b.context()).event_type, IBV_EVENT_QP_FATAL);
    EXPECT_EQ(two.b.state(), IBV_QPS_ERR);
  }
}

}  // namespace
}  // namespace weft::verbs_conformance
