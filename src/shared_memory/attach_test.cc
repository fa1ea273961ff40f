// SPDX-License-Identifier: BSD-2-Clause
// Do processes that attach a region have its pages, as they asked for them?
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>

#include <cerrno>
#include <cstring>

#include "os/huge_pages.h"
#include "region_test_support.h"

namespace weft::shared_memory {
namespace {

using namespace testing_support;

TEST(Attach, ProcessesSeeWhatTheOthersWrite) {
  in_own_shm([] {
    const auto region = share(0600, 3 * kPage);
    std::memcpy(region->base() + 2 * kPage, "creator", 8);
    EXPECT_EQ(os::in_child([&] {
                const auto seen = attach({.id = region->id(), .writable = true});
                if (!seen || seen.value().length() != 3 * kPage) return 1;
                if (std::memcmp(seen.value().base() + 2 * kPage, "creator", 8) != 0) return 2;
                std::memcpy(seen.value().base(), "attacher", 9);
                return seen.value().base() == region->base() ? 3 : 0;
              }),
              0);
    EXPECT_EQ(std::memcmp(region->base(), "attacher", 9), 0);
  });
}

TEST(Attach, AReadOnlyMappingRefusesWrites) {
  in_own_shm([] {
    const auto region = share();
    EXPECT_EQ(os::in_child([&] {
                ::signal(SIGSEGV, SIG_DFL);
                const auto seen = attach({.id = region->id()});
                if (!seen || seen.value().writable()) return 1;
                *seen.value().base() = std::byte{1};
                return 2;
              }),
              -SIGSEGV);
    EXPECT_EQ(*region->base(), std::byte{0});
    EXPECT_EQ(os::in_child([&] {
                const auto seen = attach({.id = region->id()});
                return ::mprotect(seen.value().base(), kPage, PROT_READ | PROT_WRITE) == 0 ? 1 : 0;
              }),
              0)
        << "the rights of the descriptor are those of the grant";
  });
}

TEST(Attach, TheCreatorItselfMayAttach) {
  in_own_shm([] {
    const auto region = share();
    for (const bool writable : {false, true}) {
      const auto again = attach({.id = region->id(), .writable = writable});
      ASSERT_TRUE(again.ok());
      EXPECT_NE(again.value().base(), region->base());
      *region->base() = std::byte{7};
      EXPECT_EQ(*again.value().base(), std::byte{7});
    }
    EXPECT_EQ(os::in_child([&] { return attach_error(region->id()); }), 0) << "it lives on";
  });
}

TEST(Attach, AFreePageIsTakenAsTheAddress) {
  in_own_shm([] {
    const auto region = share();
    std::byte* hint = nullptr;
    {
      const auto first = attach({.id = region->id()});
      hint = first.value().base();
    }
    const auto there = attach({.id = region->id(), .hint = hint});
    ASSERT_TRUE(there.ok());
    EXPECT_EQ(there.value().base(), hint);
    auto* const last = reinterpret_cast<std::byte*>(~std::uintptr_t{0});  // MAP_FAILED
    for (std::byte* bad : {hint, hint + 8, region->base(), last}) {
      const auto elsewhere = attach({.id = region->id(), .hint = bad});
      ASSERT_TRUE(elsewhere.ok());
      EXPECT_NE(elsewhere.value().base(), bad);
    }
  });
}

TEST(Attach, AnAttachedRegionHasNoIdToShareItBy) {
  in_own_shm([] {
    const auto region = share();
    EXPECT_NE(region->id(), 0U);
    const auto seen = attach({.id = region->id(), .writable = true});
    ASSERT_TRUE(seen.ok());
    EXPECT_EQ(seen.value().id(), 0U);
    EXPECT_EQ(region_names().size(), 1U);
  });
}

TEST(Attach, LargePagesAreLargeForAllAndALengthIsKept) {
  in_own_shm([] {
    const std::size_t length = os::kHugePage + 3 * kPage;
    const auto region = share(0600, length);
    const auto seen = attach({.id = region->id(), .writable = true});
    ASSERT_TRUE(seen.ok());
    EXPECT_EQ(region->length(), length);
    EXPECT_EQ(seen.value().length(), length);
    EXPECT_EQ(seen.value().obtained().block_order, region->obtained().block_order);
    if (region->obtained().block_order != 21) GTEST_SKIP() << "no pages of 2 MiB are to be had";
    for (std::byte* base : {region->base(), seen.value().base()})
      EXPECT_EQ(reinterpret_cast<std::uintptr_t>(base) % os::kHugePage, 0U);
  });
}

TEST(Attach, BasePagesAreNotTakenForLargeOnes) {
  in_own_shm([] {
    for (const std::size_t length : {os::kHugePage, 2 * os::kHugePage}) {
      const auto region = allocate({.length = length, .settings{.max_order = 12}, .grants = 0600});
      ASSERT_TRUE(region.ok());
      const auto seen = attach({.id = region.value().id()});
      ASSERT_TRUE(seen.ok());
      EXPECT_EQ(seen.value().length(), length);
      EXPECT_EQ(seen.value().obtained().block_order, 12U);
      EXPECT_EQ(seen.value().obtained().backing, Backing::kBasePages);
    }
  });
}

TEST(Attach, AnUnknownIdIsNotFound) {
  in_own_shm([] {
    const auto region = share();
    for (const std::uint32_t id : {0U, region->id() + 1, region->id() - 1, ~region->id()})
      EXPECT_EQ(attach_error(id), ENOENT);
  });
}

}  // namespace
}  // namespace weft::shared_memory
