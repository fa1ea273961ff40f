// SPDX-License-Identifier: BSD-2-Clause
// Which memory does ibv_exp_reg_mr(3) register and allocate, and what does it refuse?
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <cstdint>

#include "test_support.h"

namespace weft::verbs {
namespace {

constexpr std::size_t kPage = 4096;

class ExperimentalRegion : public VerbsTest {
 protected:
  void SetUp() override {
    VerbsTest::SetUp();
    in_.pd = pd_;
  }
  ibv_exp_reg_mr_in& own_memory(std::uint64_t access) {
    in_.addr = memory_.data();
    in_.length = memory_.size();
    in_.exp_access = access;
    return in_;
  }
  ibv_exp_reg_mr_in& allocated(std::size_t length, std::uint64_t access) {
    in_.addr = nullptr;
    in_.length = length;
    in_.exp_access = access | IBV_EXP_ACCESS_ALLOCATE_MR;
    return in_;
  }
  void expect_refused(int error) {
    errno = 0;
    EXPECT_EQ(ibv_exp_reg_mr(&in_), nullptr);
    EXPECT_EQ(errno, error);
  }
  void expect_taken() {
    ibv_mr* const region = ibv_exp_reg_mr(&in_);
    ASSERT_NE(region, nullptr);
    EXPECT_EQ(region->length, in_.length);
    EXPECT_EQ(ibv_dereg_mr(region), 0);
  }
  // A free page, far from where the kernel would map something else in its place.
  static void* hole() {
    void* const far = reinterpret_cast<void*>(0x2000'0000'0000);
    void* const page = ::mmap(far, kPage, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    EXPECT_EQ(::munmap(page, kPage), 0);
    return page;
  }
  ibv_exp_reg_mr_in& contiguous(void* address, std::size_t length) {
    in_.addr = address;
    in_.length = length;
    in_.exp_access = IBV_EXP_ACCESS_LOCAL_WRITE;
    in_.comp_mask = IBV_EXP_REG_MR_CREATE_FLAGS;
    in_.create_flags = IBV_EXP_REG_MR_CREATE_CONTIG;
    return in_;
  }
  static bool is_mapped(void* address) { return ::msync(address, kPage, MS_ASYNC) == 0; }

  alignas(kPage) std::array<std::byte, kPage> memory_{};
  ibv_exp_reg_mr_in in_{};
};

TEST_F(ExperimentalRegion, OfOwnMemoryIsAsOfThePlainVerb) {
  ibv_mr* const region = ibv_exp_reg_mr(&own_memory(IBV_EXP_ACCESS_REMOTE_READ));
  ASSERT_NE(region, nullptr);
  EXPECT_EQ(region->context, context_);
  EXPECT_EQ(region->pd, pd_);
  EXPECT_EQ(region->addr, memory_.data());
  EXPECT_EQ(region->length, memory_.size());
  EXPECT_NE(region->lkey, 0U);
  EXPECT_EQ(region->rkey, region->lkey);
  EXPECT_EQ(ibv_dereg_mr(region), 0);
}

TEST_F(ExperimentalRegion, NeedsADomain) {
  own_memory(0).pd = nullptr;
  expect_refused(EINVAL);
}

TEST_F(ExperimentalRegion, RefusesUnknownBitsOfTheMask) {
  own_memory(0).comp_mask = IBV_EXP_REG_MR_RESERVED;
  expect_refused(EINVAL);
  in_.comp_mask = 1U << 31;
  expect_refused(EINVAL);
}

TEST_F(ExperimentalRegion, RefusesUnknownAccessFlags) {
  for (const std::uint64_t unknown :
       {std::uint64_t{IBV_EXP_ACCESS_RESERVED}, std::uint64_t{1} << 63, std::uint64_t{1} << 32,
        std::uint64_t{IBV_ACCESS_ZERO_BASED}, std::uint64_t{IBV_ACCESS_ON_DEMAND},
        std::uint64_t{IBV_ACCESS_RELAXED_ORDERING}}) {
    own_memory(IBV_EXP_ACCESS_LOCAL_WRITE | unknown);
    expect_refused(EINVAL);
  }
}

TEST_F(ExperimentalRegion, NeedsTheLocalRightForRemoteChanges) {
  for (const std::uint64_t remote : {IBV_EXP_ACCESS_REMOTE_WRITE, IBV_EXP_ACCESS_REMOTE_ATOMIC}) {
    own_memory(remote);
    expect_refused(EINVAL);
    own_memory(remote | IBV_EXP_ACCESS_LOCAL_WRITE);
    expect_taken();
    allocated(kPage, remote);
    expect_refused(EINVAL);
  }
}

TEST_F(ExperimentalRegion, TakesFlagsThatNeedNothingOfWeft) {
  own_memory(IBV_EXP_ACCESS_RELAXED | IBV_EXP_ACCESS_MW_BIND | IBV_EXP_ACCESS_MW_ZERO_BASED);
  expect_taken();
}

TEST_F(ExperimentalRegion, OfPhysicalAddressesIsNotOffered) {
  own_memory(IBV_EXP_ACCESS_PHYSICAL_ADDR);
  expect_refused(EINVAL);
  in_.addr = nullptr;
  expect_refused(EINVAL);
  in_.length = 0;
  expect_refused(EOPNOTSUPP);
}

TEST_F(ExperimentalRegion, WithTunneledAtomicsIsNotOffered) {
  own_memory(IBV_EXP_ACCESS_TUNNELED_ATOMIC);
  expect_refused(EOPNOTSUPP);
}

TEST_F(ExperimentalRegion, OfADevicesMemoryIsNotOffered) {
  own_memory(0).dm = reinterpret_cast<ibv_exp_dm*>(memory_.data());
  expect_taken();
  in_.comp_mask = IBV_EXP_REG_MR_DM;
  expect_refused(EOPNOTSUPP);
}

TEST_F(ExperimentalRegion, IsNotOnlyMapped) {
  own_memory(IBV_EXP_ACCESS_NO_RDMA);
  expect_refused(EINVAL);
  allocated(kPage, IBV_EXP_ACCESS_NO_RDMA);
  expect_refused(EINVAL);
}

TEST_F(ExperimentalRegion, ReadsCreateFlagsOnlyWithTheirBitOfTheMask) {
  own_memory(0).create_flags = UINT32_MAX;
  expect_taken();
  in_.comp_mask = IBV_EXP_REG_MR_CREATE_FLAGS;
  expect_refused(EINVAL);
  in_.create_flags = IBV_EXP_REG_MR_CREATE_CONTIG << 1;
  expect_refused(EINVAL);
}

TEST_F(ExperimentalRegion, OnDemandMayBeMappedLater) {
  in_.addr = hole();
  in_.length = kPage;
  expect_refused(EFAULT);
  in_.exp_access = IBV_EXP_ACCESS_ON_DEMAND;
  expect_taken();
}

TEST_F(ExperimentalRegion, OfAllMemoryIsOnDemand) {
  in_.length = IBV_EXP_IMPLICIT_MR_SIZE;
  in_.exp_access = IBV_EXP_ACCESS_ON_DEMAND;
  expect_taken();
}

TEST_F(ExperimentalRegion, IsAllocatedWhereTheAllocatorWants) {
  allocated(kPage, 0).addr = memory_.data();
  expect_refused(EINVAL);
}

TEST_F(ExperimentalRegion, IsAllocatedByOneFlagOrTheOther) {
  contiguous(nullptr, kPage).exp_access = IBV_EXP_ACCESS_ALLOCATE_MR;
  expect_refused(EINVAL);
}

TEST_F(ExperimentalRegion, IsPlacedContiguouslyWhereTheProgramWants) {
  void* const wanted = hole();
  ibv_mr* const region = ibv_exp_reg_mr(&contiguous(wanted, kPage));
  ASSERT_NE(region, nullptr);
  EXPECT_EQ(region->addr, wanted);
  EXPECT_EQ(*static_cast<unsigned char*>(wanted), 0);
  weft_exp_mr_memory described{};
  EXPECT_EQ(weft_exp_query_mr_memory(region, &described), 0);
  EXPECT_EQ(ibv_dereg_mr(region), 0);
  EXPECT_FALSE(is_mapped(wanted));
  contiguous(nullptr, kPage);
  expect_taken();
}

TEST_F(ExperimentalRegion, IsNotPlacedContiguouslyOverOtherMemory) {
  contiguous(memory_.data(), kPage);
  expect_refused(EINVAL);
  contiguous(static_cast<std::byte*>(hole()) + 1, kPage);
  expect_refused(EINVAL);
}

TEST_F(ExperimentalRegion, OfNoBytesIsNotAllocated) {
  allocated(0, 0);
  expect_refused(EINVAL);
}

TEST_F(ExperimentalRegion, IsAllocatedWithZerosAndKeepsItsLength) {
  ibv_mr* const region = ibv_exp_reg_mr(&allocated(kPage + 100, IBV_EXP_ACCESS_LOCAL_WRITE));
  ASSERT_NE(region, nullptr);
  EXPECT_EQ(region->length, kPage + 100);
  EXPECT_EQ(std::bit_cast<std::uintptr_t>(region->addr) % kPage, 0U);
  EXPECT_NE(region->lkey, 0U);
  auto* const bytes = static_cast<unsigned char*>(region->addr);
  EXPECT_EQ(std::count(bytes, bytes + region->length, 0), static_cast<long>(region->length));
  std::fill_n(bytes, region->length, 1);
  EXPECT_EQ(ibv_dereg_mr(region), 0);
  EXPECT_FALSE(is_mapped(bytes));
}

TEST_F(ExperimentalRegion, TellsWhichMemoryItHas) {
  ibv_mr* const plain = ibv_exp_reg_mr(&own_memory(0));
  ibv_mr* const region = ibv_exp_reg_mr(&allocated(kPage, 0));
  ASSERT_NE(region, nullptr);
  weft_exp_mr_memory described{};
  EXPECT_EQ(weft_exp_query_mr_memory(plain, &described), EINVAL);
  EXPECT_EQ(weft_exp_query_mr_memory(region, &described), 0);
  EXPECT_EQ(described.backing, WEFT_EXP_BASE_PAGES);
  EXPECT_EQ(described.block_order, 12U);
  const std::uint32_t handle = region->handle;
  region->handle = handle + 1;
  EXPECT_EQ(weft_exp_query_mr_memory(region, &described), ENOENT);
  region->handle = handle;
  EXPECT_EQ(ibv_dereg_mr(region), 0);
  EXPECT_EQ(ibv_dereg_mr(plain), 0);
}

TEST_F(ExperimentalRegion, GivesItsMemoryBackWhenItMoves) {
  ibv_mr* const region = ibv_exp_reg_mr(&allocated(kPage, IBV_EXP_ACCESS_LOCAL_WRITE));
  ASSERT_NE(region, nullptr);
  void* const former = region->addr;
  EXPECT_EQ(
      ibv_rereg_mr(region, IBV_REREG_MR_CHANGE_ACCESS, nullptr, nullptr, 0, IBV_ACCESS_REMOTE_READ),
      0);
  EXPECT_TRUE(is_mapped(former));
  EXPECT_EQ(ibv_rereg_mr(region, IBV_REREG_MR_CHANGE_TRANSLATION, nullptr, memory_.data(),
                         memory_.size(), 0),
            0);
  EXPECT_FALSE(is_mapped(former));
  EXPECT_EQ(region->addr, memory_.data());
  weft_exp_mr_memory described{};
  EXPECT_EQ(weft_exp_query_mr_memory(region, &described), EINVAL);
  EXPECT_EQ(ibv_dereg_mr(region), 0);
}

TEST_F(ExperimentalRegion, KeepsItsMemoryWhenItCannotMove) {
  ibv_mr* const region = ibv_exp_reg_mr(&allocated(2 * kPage, IBV_EXP_ACCESS_LOCAL_WRITE));
  ASSERT_NE(region, nullptr);
  const auto move = [&](void* to, std::size_t length) {
    return ibv_rereg_mr(region, IBV_REREG_MR_CHANGE_TRANSLATION, nullptr, to, length, 0);
  };
  EXPECT_EQ(move(memory_.data(), 0), IBV_REREG_MR_ERR_INPUT);
  auto* const own = static_cast<std::byte*>(region->addr);
  for (const std::size_t at : {std::size_t{0}, kPage}) {  // into memory that it gives back
    EXPECT_EQ(move(own + at, kPage), IBV_REREG_MR_ERR_INPUT);
    EXPECT_EQ(errno, EINVAL);
  }
  EXPECT_EQ(move(own - 1, 2), IBV_REREG_MR_ERR_INPUT);
  EXPECT_TRUE(is_mapped(region->addr));
  EXPECT_EQ(ibv_dereg_mr(region), 0);
}

TEST_F(ExperimentalRegion, IsSharedOnlyWhenAllocatedInWholePages) {
  own_memory(IBV_EXP_ACCESS_SHARED_MR_USER_READ);
  expect_refused(EINVAL);
  for (const std::size_t length : {std::size_t{0}, kPage - 1, kPage + 1}) {
    allocated(length, IBV_EXP_ACCESS_SHARED_MR_USER_READ);
    expect_refused(EINVAL);
  }
  allocated(kPage, IBV_EXP_ACCESS_SHARED_MR_OTHER_WRITE);
  expect_taken();
  for (void* const address : {static_cast<void*>(nullptr), hole()}) {
    contiguous(address, kPage).exp_access |= IBV_EXP_ACCESS_SHARED_MR_USER_READ;
    expect_taken();
  }
}

}  // namespace
}  // namespace weft::verbs
