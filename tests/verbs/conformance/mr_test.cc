// SPDX-License-Identifier: BSD-2-Clause
// Which memory may be registered, with which rights? (ibv_reg_mr(3), ibv_rereg_mr(3))
#include <sys/mman.h>
#include <sys/resource.h>

#include <array>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <set>
#include <utility>

#include "support/end.h"

namespace weft::verbs_conformance {
namespace {

// Pages of the process, unmapped at the end.
class Pages {
 public:
  explicit Pages(int protection, std::size_t length = 8192)
      : length_(length),
        base_(::mmap(nullptr, length, protection, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)) {
    EXPECT_NE(base_, MAP_FAILED);
  }
  ~Pages() { ::munmap(base_, length_); }
  Pages(const Pages&) = delete;
  Pages& operator=(const Pages&) = delete;
  void protect(int protection) { ASSERT_EQ(::mprotect(base_, length_, protection), 0); }
  void* base() const { return base_; }
  std::uint64_t address() const { return reinterpret_cast<std::uint64_t>(base_); }

 private:
  const std::size_t length_;
  void* const base_;
};

class Registration : public testing::Test {
 protected:
  Registration() : context(open_device()), pd(ibv_alloc_pd(context.get())) {}
  Owned<ibv_mr> add(void* base, std::size_t length, unsigned access) {
    errno = 0;
    return Owned<ibv_mr>(ibv_reg_mr(pd.get(), base, length, static_cast<int>(access)));
  }
  Owned<ibv_context> context;
  Owned<ibv_pd> pd;
  std::array<std::byte, 4096> memory{};
};

TEST_F(Registration, NeedsAProtectionDomain) {
  errno = 0;
  EXPECT_EQ((ibv_reg_mr)(nullptr, memory.data(), 8, 0), nullptr);
  EXPECT_EQ(errno, EINVAL);
}

TEST_F(Registration, OfRemoteChangesNeedsTheLocalRight) {
  for (const unsigned remote : {IBV_ACCESS_REMOTE_WRITE, IBV_ACCESS_REMOTE_ATOMIC}) {
    EXPECT_EQ(add(memory.data(), 8, remote), nullptr);
    EXPECT_EQ(errno, EINVAL);
    EXPECT_EQ(add(memory.data(), 8, remote | IBV_ACCESS_REMOTE_READ), nullptr);
    EXPECT_EQ(errno, EINVAL);
    EXPECT_NE(add(memory.data(), 8, remote | IBV_ACCESS_LOCAL_WRITE), nullptr);
  }
}

TEST_F(Registration, RefusesUnknownRightsButNotOptionalOnes) {
  EXPECT_EQ(add(memory.data(), 8, 1u << 15), nullptr);
  EXPECT_NE(add(memory.data(), 8, IBV_ACCESS_RELAXED_ORDERING), nullptr);
}

TEST_F(Registration, DescribesTheRegion) {
  const auto region = add(memory.data(), 100, IBV_ACCESS_REMOTE_READ);
  ASSERT_NE(region, nullptr);
  EXPECT_EQ(region->context, context.get());
  EXPECT_EQ(region->pd, pd.get());
  EXPECT_EQ(region->addr, memory.data());
  EXPECT_EQ(region->length, 100u);
  EXPECT_NE(region->lkey, 0u);
}

TEST_F(Registration, OfMemoryThatIsNotMappedFails) {
  std::optional<Pages> pages(PROT_READ | PROT_WRITE);
  void* const gone = pages->base();
  EXPECT_NE(add(gone, 8192, IBV_ACCESS_LOCAL_WRITE), nullptr);
  pages.reset();
  EXPECT_EQ(add(gone, 8192, IBV_ACCESS_LOCAL_WRITE), nullptr);
  EXPECT_EQ(errno, EFAULT);
  EXPECT_NE(add(gone, 8192, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_ON_DEMAND), nullptr);
}

TEST_F(Registration, OfARangeThatWrapsAroundFails) {
  EXPECT_EQ(add(memory.data(), SIZE_MAX, IBV_ACCESS_LOCAL_WRITE), nullptr);
  EXPECT_EQ(add(memory.data(), SIZE_MAX, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_ON_DEMAND), nullptr);
}

TEST_F(Registration, OfNoBytesIsAllowed) {
  EXPECT_NE(add(memory.data(), 0, IBV_ACCESS_LOCAL_WRITE), nullptr);
}

TEST_F(Registration, OfTheSameMemoryHasKeysOfItsOwn) {
  std::set<std::uint32_t> keys;
  std::vector<Owned<ibv_mr>> regions;
  for (int i = 0; i < 1000; ++i) {
    regions.push_back(add(memory.data(), 8, 0));
    ASSERT_NE(regions.back(), nullptr);
    EXPECT_TRUE(keys.insert(regions.back()->lkey).second);
  }
}

TEST_F(Registration, AKeyRestsAfterItsRegion) {
  std::set<std::uint32_t> keys;
  for (int i = 0; i < 1000; ++i) {
    const auto region = add(memory.data(), 8, 0);
    ASSERT_NE(region, nullptr);
    EXPECT_TRUE(keys.insert(region->lkey).second) << "a late packet could find another region";
  }
}

// Nothing is pinned, so RLIMIT_MEMLOCK does not matter.
TEST_F(Registration, PinsNothing) {
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_MEMLOCK, &before), 0);
  rlimit none = before;
  none.rlim_cur = 0;
  ASSERT_EQ(::setrlimit(RLIMIT_MEMLOCK, &none), 0);
  EXPECT_NE(add(memory.data(), memory.size(), IBV_ACCESS_LOCAL_WRITE), nullptr);
  EXPECT_EQ(::setrlimit(RLIMIT_MEMLOCK, &before), 0);
}

// The address by which requests name a region.
TEST(NamedAddress, MayBeChosen) {
  Pair two;
  const std::uint64_t name = 0x1'0000'0000'0000;
  const Owned<ibv_mr> named(ibv_reg_mr_iova(two.b.pd(), two.b.memory(), 4096, name, kAllRights));
  ASSERT_NE(named, nullptr);
  std::memset(two.a.memory(), 0x42, 16);
  ASSERT_EQ(two.a.write({name + 8, named->rkey}, 16), 0);
  EXPECT_EQ(two.a.sent().status, IBV_WC_SUCCESS);
  EXPECT_EQ(std::memcmp(two.b.memory() + 8, two.a.memory(), 16), 0);
  const Owned<ibv_mr> zero(ibv_reg_mr(two.b.pd(), two.b.memory(), 4096,
                                      static_cast<int>(kAllRights | IBV_ACCESS_ZERO_BASED)));
  ASSERT_NE(zero, nullptr);
  ASSERT_EQ(two.a.read({8, zero->rkey}, 16), 0);
  EXPECT_EQ(two.a.sent().status, IBV_WC_SUCCESS);
}

// Re-registration: the keys stay.
class Again : public testing::Test {
 protected:
  int change(int flags, void* base, std::size_t length, unsigned access, ibv_pd* pd = nullptr) {
    errno = 0;
    return ibv_rereg_mr(two.b.mr(), flags, pd, base, length, static_cast<int>(access));
  }
  ibv_wc_status write(const RemotePlace& to) {
    EXPECT_EQ(two.a.write(to, 8), 0);
    return two.a.sent().status;
  }
  Pair two;
};

TEST_F(Again, MovesTheRegionUnderItsKeys) {
  const std::uint32_t lkey = two.b.mr()->lkey;
  const std::uint32_t rkey = two.b.mr()->rkey;
  std::array<std::byte, 64> other{};
  ASSERT_EQ(change(IBV_REREG_MR_CHANGE_TRANSLATION, other.data(), other.size(), 0), 0);
  EXPECT_EQ(two.b.mr()->lkey, lkey);
  EXPECT_EQ(two.b.mr()->rkey, rkey);
  EXPECT_EQ(two.b.mr()->addr, other.data());
  EXPECT_EQ(two.b.mr()->length, other.size());
  two.a.memory()[0] = std::byte{9};
  EXPECT_EQ(write({reinterpret_cast<std::uint64_t>(other.data()), rkey}), IBV_WC_SUCCESS);
  EXPECT_EQ(other[0], std::byte{9});
  EXPECT_EQ(write(two.b.place(0)), IBV_WC_REM_ACCESS_ERR) << "where it was before";
  ASSERT_EQ(change(IBV_REREG_MR_CHANGE_TRANSLATION, two.b.memory(), End::kBytes, 0), 0);
}

TEST_F(Again, ChangesTheRights) {
  EXPECT_EQ(write(two.b.place(0)), IBV_WC_SUCCESS);
  ASSERT_EQ(change(IBV_REREG_MR_CHANGE_ACCESS, nullptr, 0, IBV_ACCESS_REMOTE_READ), 0);
  ASSERT_EQ(two.a.read(two.b.place(0), 8), 0);
  EXPECT_EQ(two.a.sent().status, IBV_WC_SUCCESS);
  EXPECT_EQ(write(two.b.place(0)), IBV_WC_REM_ACCESS_ERR);
}

TEST_F(Again, ChangesTheProtectionDomain) {
  Owned<ibv_pd> other(ibv_alloc_pd(two.b.context()));
  ASSERT_EQ(change(IBV_REREG_MR_CHANGE_PD, nullptr, 0, 0, other.get()), 0);
  EXPECT_EQ(two.b.mr()->pd, other.get());
  EXPECT_EQ(ibv_dealloc_pd(other.get()), EBUSY) << "the region is in it now";
  EXPECT_EQ(write(two.b.place(0)), IBV_WC_REM_ACCESS_ERR);
  ASSERT_EQ(change(IBV_REREG_MR_CHANGE_PD, nullptr, 0, 0, two.b.pd()), 0);
}

TEST_F(Again, RefusesNonsenseAndLeavesTheRegionUsable) {
  void* const memory = two.b.memory();
  EXPECT_EQ(change(0, memory, 8, 0), IBV_REREG_MR_ERR_INPUT);
  EXPECT_EQ(change(1 << 10, memory, 8, 0), IBV_REREG_MR_ERR_INPUT);
  EXPECT_EQ(change(IBV_REREG_MR_CHANGE_TRANSLATION, nullptr, 8, 0), IBV_REREG_MR_ERR_INPUT);
  EXPECT_EQ(change(IBV_REREG_MR_CHANGE_TRANSLATION, memory, 0, 0), IBV_REREG_MR_ERR_INPUT);
  EXPECT_EQ(change(IBV_REREG_MR_CHANGE_PD, memory, 8, 0), IBV_REREG_MR_ERR_INPUT);
  EXPECT_EQ(change(IBV_REREG_MR_CHANGE_ACCESS, nullptr, 0, IBV_ACCESS_REMOTE_WRITE),
            IBV_REREG_MR_ERR_INPUT);
  EXPECT_EQ(errno, EINVAL);
  EXPECT_EQ(write(two.b.place(0)), IBV_WC_SUCCESS);
}

TEST_F(Again, OfUnmappedMemoryIsRefused) {
  void* gone = nullptr;
  {
    const Pages pages(PROT_READ | PROT_WRITE);
    gone = pages.base();
  }
  EXPECT_NE(change(IBV_REREG_MR_CHANGE_TRANSLATION, gone, 4096, 0), 0);
  EXPECT_EQ(errno, EFAULT);
  EXPECT_EQ(write(two.b.place(0)), IBV_WC_SUCCESS);
}

// Regions on demand: what is mapped when bytes are touched counts.
TEST(OnDemand, IsOfferedForBothSides) {
  const auto context = open_device();
  ibv_device_attr_ex device{};
  ASSERT_EQ(ibv_query_device_ex(context.get(), nullptr, &device), 0);
  EXPECT_NE(device.odp_caps.general_caps & IBV_ODP_SUPPORT, 0u);
  EXPECT_NE(device.odp_caps.general_caps & IBV_ODP_SUPPORT_IMPLICIT, 0u);
}

TEST(OnDemand, MemoryMayBeMappedLater) {
  Pages pages(PROT_NONE);
  Pair two;
  const Owned<ibv_mr> region(ibv_reg_mr(two.b.pd(), pages.base(), 8192,
                                        static_cast<int>(kAllRights | IBV_ACCESS_ON_DEMAND)));
  ASSERT_NE(region, nullptr);
  pages.protect(PROT_READ | PROT_WRITE);
  std::memset(two.a.memory(), 0x77, 8192);
  ASSERT_EQ(two.a.write({pages.address(), region->rkey}, 8192), 0);
  EXPECT_EQ(two.a.sent().status, IBV_WC_SUCCESS);
  EXPECT_EQ(std::memcmp(pages.base(), two.a.memory(), 8192), 0);
}

TEST(OnDemand, OneImplicitRegionHasAllMemory) {
  Pair two;
  const auto implicit = [](ibv_pd* pd) {
    return Owned<ibv_mr>(
        ibv_reg_mr(pd, nullptr, SIZE_MAX, static_cast<int>(kAllRights | IBV_ACCESS_ON_DEMAND)));
  };
  const auto here = implicit(two.a.pd());
  const auto there = implicit(two.b.pd());
  ASSERT_NE(here, nullptr);
  ASSERT_NE(there, nullptr);
  Pages from(PROT_READ | PROT_WRITE);
  Pages to(PROT_READ | PROT_WRITE);
  std::memset(from.base(), 0x31, 8192);
  ASSERT_EQ(two.a.post(SendRequest(IBV_WR_RDMA_WRITE, {{from.address(), 8192, here->lkey}})
                           .at({to.address(), there->rkey})),
            0);
  EXPECT_EQ(two.a.sent().status, IBV_WC_SUCCESS);
  EXPECT_EQ(std::memcmp(from.base(), to.base(), 8192), 0);
}

}  // namespace
}  // namespace weft::verbs_conformance
