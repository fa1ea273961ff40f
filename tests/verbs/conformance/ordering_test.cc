// SPDX-License-Identifier: BSD-2-Clause
// In which order are requests of one queue pair executed, and completed? (IBTA 9.5, 10.8.3.3)
#include <array>
#include <cstring>

#include "support/end.h"

namespace weft::verbs_conformance {
namespace {

constexpr std::size_t kLong = 200'000;

void fill(std::byte* memory, std::size_t length, unsigned seed) {
  for (std::size_t i = 0; i < length; ++i) {
    memory[i] = static_cast<std::byte>(seed + i * 31 + (i >> 8));
  }
}

TEST(Order, AMessageBehindAWriteFindsTheBytesInPlace) {
  Pair two;
  for (unsigned round = 0; round < 20; ++round) {
    fill(two.a.memory(), kLong, round);
    ASSERT_EQ(two.b.receive(ReceiveRequest({two.b.part(1 << 20, 8)})), 0);
    ASSERT_EQ(two.a.write(two.b.place(0), kLong), 0);
    ASSERT_EQ(two.a.send(8), 0);
    EXPECT_EQ(two.b.received().status, IBV_WC_SUCCESS);
    ASSERT_EQ(std::memcmp(two.b.memory(), two.a.memory(), kLong), 0);
    EXPECT_EQ(two.a.sent().status, IBV_WC_SUCCESS);
    EXPECT_EQ(two.a.sent().status, IBV_WC_SUCCESS);
  }
}

TEST(Order, AReadFindsTheBytesOfAnEarlierWrite) {
  Pair two;
  fill(two.a.memory(), kLong, 9);
  ASSERT_EQ(two.a.write(two.b.place(0), kLong, 1), 0);
  ASSERT_EQ(
      two.a.post(SendRequest(IBV_WR_RDMA_READ, {two.a.part(kLong, kLong)}, 2).at(two.b.place(0))),
      0);
  EXPECT_EQ(two.a.sent().wr_id, 1u);
  const ibv_wc wc = two.a.sent();
  EXPECT_EQ(wc.wr_id, 2u);
  EXPECT_EQ(wc.byte_len, kLong);
  EXPECT_EQ(std::memcmp(two.a.memory() + kLong, two.a.memory(), kLong), 0);
}

// The bytes that a read brings are sent on by a request that waits for it.
TEST(Order, AFencedRequestWaitsForReads) {
  Pair two;
  for (unsigned round = 0; round < 10; ++round) {
    fill(two.b.memory(), kLong, 50 + round);
    std::memset(two.a.memory(), 0, kLong);
    ASSERT_EQ(two.b.receive(ReceiveRequest({two.b.part(1 << 20, kLong)})), 0);
    SendRequest read(IBV_WR_RDMA_READ, {two.a.part(0, kLong)});
    SendRequest send(IBV_WR_SEND, {two.a.part(0, kLong)});
    read.at(two.b.place(0));
    send.flagged(IBV_SEND_FENCE);
    ibv_send_wr* bad = nullptr;
    ASSERT_EQ(ibv_post_send(two.a.qp(), read.get(send.get()), &bad), 0);
    EXPECT_EQ(two.b.received().byte_len, kLong);
    ASSERT_EQ(std::memcmp(two.b.memory() + (1 << 20), two.b.memory(), kLong), 0);
    EXPECT_EQ(two.a.sent().status, IBV_WC_SUCCESS);
    EXPECT_EQ(two.a.sent().status, IBV_WC_SUCCESS);
  }
}

// Short requests behind long reads end later all the same.
TEST(Order, CompletionsComeInTheOrderOfThePosts) {
  Pair two;
  for (std::uint64_t id = 0; id < 16; ++id) ASSERT_EQ(two.b.receive(8, id), 0);
  std::uint64_t id = 0;
  for (int round = 0; round < 12; ++round) {
    ASSERT_EQ(two.a.read(two.b.place(0), 50'000, id++), 0);
    ASSERT_EQ(two.a.send(8, id++), 0);
    ASSERT_EQ(two.a.write(two.b.place(0), 3000, id++), 0);
    ASSERT_EQ(two.a.post(SendRequest(IBV_WR_ATOMIC_FETCH_AND_ADD, {two.a.part(0, 8)}, id++)
                             .at(two.b.place(64))
                             .operands(1)),
              0);
  }
  for (std::uint64_t expected = 0; expected < id; ++expected) {
    const ibv_wc wc = two.a.sent();
    ASSERT_EQ(wc.status, IBV_WC_SUCCESS);
    ASSERT_EQ(wc.wr_id, expected);
  }
  for (std::uint64_t expected = 0; expected < 12; ++expected) {
    EXPECT_EQ(two.b.received().wr_id, expected);
  }
}

// Each operation is executed once: the values that it finds are all different.
TEST(Order, AtomicOperationsOfTwoQueuePairsExcludeEachOther) {
  End target;
  End first;
  End second;
  ibv_qp_init_attr wanted{};
  wanted.send_cq = target.sends();
  wanted.recv_cq = target.receives();
  wanted.qp_type = IBV_QPT_RC;
  wanted.cap = {1, 1, 1, 1, 0};
  const Owned<ibv_qp> other(ibv_create_qp(target.pd(), &wanted));
  ASSERT_NE(other, nullptr);
  ibv_qp_attr attributes = target.usual();
  attributes.dest_qp_num = second.qp()->qp_num;
  ASSERT_EQ(move_to(other.get(), IBV_QPS_INIT, attributes), 0);
  ASSERT_EQ(move_to(other.get(), IBV_QPS_RTR, attributes), 0);
  target.connect(first.qp()->qp_num);
  first.connect(target.qp()->qp_num);
  second.connect(other->qp_num);
  first.partner_with(target);
  second.partner_with(target);
  constexpr int kEach = 50;
  for (int i = 0; i < kEach; ++i) {
    for (End* const end : {&first, &second}) {
      ASSERT_EQ(end->post(SendRequest(IBV_WR_ATOMIC_FETCH_AND_ADD,
                                      {end->part(static_cast<std::size_t>(i) * 8, 8)})
                              .at(target.place(0))
                              .operands(1)),
                0);
    }
  }
  std::array<int, 2 * kEach> seen{};
  for (End* const end : {&first, &second}) {
    for (int i = 0; i < kEach; ++i) ASSERT_EQ(end->sent().status, IBV_WC_SUCCESS);
  }
  for (End* const end : {&first, &second}) {
    for (int i = 0; i < kEach; ++i) {
      std::uint64_t value = 0;
      std::memcpy(&value, end->memory() + i * 8, sizeof value);
      ASSERT_LT(value, seen.size());
      ++seen[value];
    }
  }
  for (const int count : seen) EXPECT_EQ(count, 1);
}

}  // namespace
}  // namespace weft::verbs_conformance
