// SPDX-License-Identifier: BSD-2-Clause
// Is memory of a shared region accessed through the keys of its creator and of each attacher?
// (ibv_exp_reg_mr(3), ibv_exp_reg_shared_mr(3))
#include <cstdint>

#include "support/end.h"

namespace weft::verbs_conformance {
namespace {

constexpr std::size_t kLength = 4096;
constexpr std::uint64_t kRights = IBV_EXP_ACCESS_LOCAL_WRITE | IBV_EXP_ACCESS_REMOTE_WRITE |
                                  IBV_EXP_ACCESS_REMOTE_READ | IBV_EXP_ACCESS_REMOTE_ATOMIC;

class SharedRegion : public testing::Test {
 protected:
  SharedRegion() {
    ibv_exp_reg_mr_in in{};
    in.pd = two.b.pd();
    in.length = kLength;
    in.exp_access = kRights | IBV_EXP_ACCESS_ALLOCATE_MR | IBV_EXP_ACCESS_SHARED_MR_USER_READ |
                    IBV_EXP_ACCESS_SHARED_MR_USER_WRITE;
    creator.reset(ibv_exp_reg_mr(&in));
  }
  void SetUp() override { ASSERT_NE(creator, nullptr); }
  Owned<ibv_mr> attach(std::uint64_t access) {
    ibv_exp_reg_shared_mr_in in{creator->handle, two.b.pd(), nullptr, access, 0};
    return Owned<ibv_mr>(ibv_exp_reg_shared_mr(&in));
  }
  static RemotePlace start_of(const Owned<ibv_mr>& region) {
    return {reinterpret_cast<std::uint64_t>(region->addr), region->rkey};
  }
  static std::uint64_t& word(const Owned<ibv_mr>& region) {
    return *static_cast<std::uint64_t*>(region->addr);
  }
  std::uint64_t& own_word() { return *reinterpret_cast<std::uint64_t*>(two.a.memory()); }
  ibv_wc_status write(const RemotePlace& to) {
    EXPECT_EQ(two.a.write(to, sizeof(std::uint64_t)), 0);
    return two.a.sent().status;
  }
  ibv_wc_status read(const RemotePlace& from) {
    EXPECT_EQ(two.a.read(from, sizeof(std::uint64_t)), 0);
    return two.a.sent().status;
  }

  Pair two;
  Owned<ibv_mr> creator;
};

TEST_F(SharedRegion, IsWrittenThroughOneKeyAndReadThroughTheOther) {
  const auto attached = attach(kRights);
  ASSERT_NE(attached, nullptr);
  own_word() = 0x1234;
  EXPECT_EQ(write(start_of(attached)), IBV_WC_SUCCESS);
  EXPECT_EQ(word(creator), 0x1234U);
  word(attached) = 0x5678;
  EXPECT_EQ(read(start_of(creator)), IBV_WC_SUCCESS);
  EXPECT_EQ(own_word(), 0x5678U);
}

TEST_F(SharedRegion, ReceivesMessagesForAllThatHaveIt) {
  const auto attached = attach(IBV_EXP_ACCESS_LOCAL_WRITE);
  ASSERT_NE(attached, nullptr);
  const ibv_sge into{reinterpret_cast<std::uint64_t>(attached->addr), 8, attached->lkey};
  ASSERT_EQ(two.b.receive(ReceiveRequest({into}, 1)), 0);
  own_word() = 0x9ABC;
  ASSERT_EQ(two.a.send(8), 0);
  EXPECT_EQ(two.b.received().status, IBV_WC_SUCCESS);
  EXPECT_EQ(word(creator), 0x9ABCU);
}

TEST_F(SharedRegion, IsAccessedByTheAttachersKeyWhenTheCreatorIsGone) {
  const auto attached = attach(kRights);
  ASSERT_NE(attached, nullptr);
  const RemotePlace gone = start_of(creator);
  creator.reset();
  own_word() = 0xDEF0;
  EXPECT_EQ(write(start_of(attached)), IBV_WC_SUCCESS);
  EXPECT_EQ(word(attached), 0xDEF0U);
  EXPECT_EQ(write(gone), IBV_WC_REM_ACCESS_ERR);
}

TEST_F(SharedRegion, IsReadAndNotWrittenThroughAKeyForReading) {
  const auto attached = attach(IBV_EXP_ACCESS_REMOTE_READ);
  ASSERT_NE(attached, nullptr);
  word(creator) = 0x1111;
  EXPECT_EQ(read(start_of(attached)), IBV_WC_SUCCESS);
  EXPECT_EQ(own_word(), 0x1111U);
  own_word() = 0x2222;
  EXPECT_EQ(write(start_of(attached)), IBV_WC_REM_ACCESS_ERR);
  EXPECT_EQ(word(creator), 0x1111U);
}

TEST_F(SharedRegion, TakesNoMessageWhereItIsAttachedForReading) {
  const auto attached = attach(0);
  ASSERT_NE(attached, nullptr);
  const ibv_sge into{reinterpret_cast<std::uint64_t>(attached->addr), 8, attached->lkey};
  ASSERT_EQ(two.b.receive(ReceiveRequest({into}, 1)), 0);
  ASSERT_EQ(two.a.send(8), 0);
  EXPECT_EQ(two.b.received().status, IBV_WC_LOC_PROT_ERR);
  EXPECT_EQ(word(creator), 0U);
}

}  // namespace
}  // namespace weft::verbs_conformance
