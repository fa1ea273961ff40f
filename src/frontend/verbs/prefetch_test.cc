// SPDX-License-Identifier: BSD-2-Clause
// Does ibv_advise_mr(3) make pages, and refuse what a work request would not be allowed?
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <vector>

#include "test_support.h"

namespace weft::verbs {
namespace {

constexpr std::size_t kPage = 4096;
constexpr std::size_t kPages = 16;

class Prefetch : public VerbsTest {
 protected:
  void SetUp() override {
    VerbsTest::SetUp();
    void* const memory =
        ::mmap(nullptr, kPages * kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    ASSERT_NE(memory, MAP_FAILED);
    memory_ = static_cast<std::byte*>(memory);
    region_ = register_with(IBV_ACCESS_LOCAL_WRITE);
  }
  void TearDown() override {
    EXPECT_EQ(ibv_dereg_mr(region_), 0);
    VerbsTest::TearDown();
    ::munmap(memory_, kPages * kPage);
  }

  ibv_mr* register_with(unsigned access) {
    return ibv_reg_mr_iova2(pd_, memory_, kPages * kPage, reinterpret_cast<std::uint64_t>(memory_),
                            access | IBV_ACCESS_ON_DEMAND);
  }
  ibv_sge entry(std::size_t page, std::size_t pages) const {
    return {reinterpret_cast<std::uint64_t>(memory_) + page * kPage,
            static_cast<std::uint32_t>(pages * kPage), region_->lkey};
  }
  int advise(ibv_advise_mr_advice advice, std::vector<ibv_sge> list,
             std::uint32_t flags = IBV_ADVISE_MR_FLAG_FLUSH) {
    return ibv_advise_mr(pd_, advice, flags, list.data(), static_cast<std::uint32_t>(list.size()));
  }
  // How many pages of the region are there.
  std::size_t present() const {
    std::array<unsigned char, kPages> state{};
    EXPECT_EQ(::mincore(memory_, kPages * kPage, state.data()), 0);
    return static_cast<std::size_t>(std::ranges::count_if(state, [](auto one) { return one & 1; }));
  }

  std::byte* memory_ = nullptr;
  ibv_mr* region_ = nullptr;
};

TEST_F(Prefetch, MakesThePagesOfTheGivenRanges) {
  ASSERT_EQ(present(), 0U);
  EXPECT_EQ(advise(IBV_ADVISE_MR_ADVICE_PREFETCH_WRITE, {entry(0, 2), entry(8, 1)}), 0);
  EXPECT_EQ(present(), 3U);
  EXPECT_EQ(advise(IBV_ADVISE_MR_ADVICE_PREFETCH_WRITE, {entry(0, kPages)}, 0), 0);
  EXPECT_EQ(present(), kPages);
}

TEST_F(Prefetch, WithoutFaultsLeavesPagesAsTheyAre) {
  EXPECT_EQ(advise(IBV_ADVISE_MR_ADVICE_PREFETCH_NO_FAULT, {entry(0, kPages)}), 0);
  EXPECT_EQ(present(), 0U);
}

TEST_F(Prefetch, IsForRangesThatAWorkRequestMayUse) {
  constexpr auto kRead = IBV_ADVISE_MR_ADVICE_PREFETCH;
  EXPECT_EQ(advise(kRead, {entry(0, kPages)}), 0);
  EXPECT_EQ(advise(kRead, {entry(1, kPages)}), EFAULT) << "past the end";
  ibv_sge unknown = entry(0, 1);
  unknown.lkey ^= 1;
  EXPECT_EQ(advise(kRead, {unknown}), EFAULT);
  ibv_pd* const other = ibv_alloc_pd(context_);
  ibv_sge own = entry(0, 1);
  EXPECT_EQ(ibv_advise_mr(other, kRead, 0, &own, 1), EFAULT) << "of another domain";
  EXPECT_EQ(ibv_dealloc_pd(other), 0);
  ibv_mr* const constant = register_with(0);
  own.lkey = constant->lkey;
  EXPECT_EQ(advise(kRead, {own}), 0);
  EXPECT_EQ(advise(IBV_ADVISE_MR_ADVICE_PREFETCH_WRITE, {own}), EFAULT) << "no right to write";
  EXPECT_EQ(ibv_dereg_mr(constant), 0);
}

TEST_F(Prefetch, ReportsMemoryThatIsNotMappedIfItIsWaitedFor) {
  ASSERT_EQ(::mprotect(memory_, kPage, PROT_NONE), 0);
  constexpr auto kRead = IBV_ADVISE_MR_ADVICE_PREFETCH;
  EXPECT_EQ(advise(kRead, {entry(0, 1)}), EFAULT);
  EXPECT_EQ(advise(kRead, {entry(0, 1)}, 0), 0);
  EXPECT_EQ(advise(kRead, {entry(1, 1)}), 0);
}

TEST_F(Prefetch, RefusesUnknownArguments) {
  constexpr auto kRead = IBV_ADVISE_MR_ADVICE_PREFETCH;
  EXPECT_EQ(advise(kRead, {entry(0, 1)}, 2), EINVAL);
  EXPECT_EQ(advise(kRead, {}), EINVAL);
  EXPECT_EQ(advise(static_cast<ibv_advise_mr_advice>(3), {entry(0, 1)}), EOPNOTSUPP);
}

}  // namespace
}  // namespace weft::verbs
