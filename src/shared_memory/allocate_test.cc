// SPDX-License-Identifier: BSD-2-Clause
// Does a process get the memory that its settings and the machine allow, or an error and nothing?
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/statvfs.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <sstream>
#include <string>

#include "os/huge_pages.h"
#include "region_test_support.h"

namespace weft::shared_memory {
namespace {

using namespace testing_support;

constexpr std::size_t kHuge = std::size_t{2} << 20;
constexpr std::array kTypes{AllocationType::kAll, AllocationType::kAnonymous,
                            AllocationType::kContiguous};

// Can this process have pages of 2 MiB, of files too? Asked of the kernel, not of the allocator.
bool huge_pages_exist(bool shared) {
  auto file = os::PublishedFile::create("/dev/shm", kHuge, true);
  if (shared) return file && file.value()->map(nullptr);
  constexpr int kRights = PROT_READ | PROT_WRITE;
  constexpr int kKind = MAP_PRIVATE | MAP_ANONYMOUS;
  auto* const base = static_cast<char*>(::mmap(nullptr, 2 * kHuge, kRights, kKind, -1, 0));
  auto* const at =
      reinterpret_cast<char*>((reinterpret_cast<std::uintptr_t>(base) + kHuge - 1) & ~(kHuge - 1));
  *at = 0;
  constexpr int kCollapse = 25;
  const bool exist = ::madvise(at, kHuge, kCollapse) == 0;
  ::munmap(base, 2 * kHuge);
  return exist;
}

bool hugetlb_pool_is_empty() {
  std::size_t pages = 0;
  std::ifstream("/sys/kernel/mm/hugepages/hugepages-2048kB/free_hugepages") >> pages;
  return pages == 0;
}

// KiB of the mapping of `base` that are mapped by pages of 2 MiB (proc_pid_smaps(5)).
std::size_t huge_kib(const std::byte* base) {
  std::ostringstream begin;
  begin << std::hex << reinterpret_cast<std::uintptr_t>(base) << '-';
  std::ifstream maps("/proc/self/smaps");
  std::size_t found = 0;
  bool here = false;
  for (std::string line; std::getline(maps, line);) {
    if (line.find("-") < line.find(":")) here = line.starts_with(begin.str());
    for (const char* field : {"AnonHugePages:", "ShmemPmdMapped:"}) {
      if (here && line.starts_with(field)) found += std::stoul(line.substr(std::strlen(field)));
    }
  }
  return found;
}

struct Case {
  AllocationType type;
  unsigned min, max;
  std::size_t length;
  unsigned grants;
  bool huge_pages;  // the machine has them
};

std::ostream& operator<<(std::ostream& out, const Case& c) {
  return out << "type " << static_cast<int>(c.type) << ", orders " << c.min << " to " << c.max
             << ", " << c.length << " bytes, grants " << c.grants << ", 2 MiB " << c.huge_pages;
}

// As docs/design/shared_regions.md has it: the error, or the order of blocks.
std::pair<int, unsigned> expected(const Case& c) {
  if (c.type == AllocationType::kAnonymous)
    return c.grants != 0 ? std::pair{EINVAL, 0U} : std::pair{0, 12U};
  const bool whole_block = c.length >= kHuge && c.max >= 21;
  const bool must_be_large = c.min >= 13;
  if (c.huge_pages && c.min <= 21 && (whole_block || must_be_large)) return {0, 21};
  if (c.type == AllocationType::kContiguous && must_be_large) return {ENOMEM, 0};
  return {0, 12};
}

void expect_zeroed_and_usable(const RegionMemory& region) {
  std::byte* const base = region.base();
  const std::size_t last = region.length() - 1;
  EXPECT_TRUE(base[0] == std::byte{} && std::memcmp(base, base + 1, last) == 0) << "not zeroed";
  base[0] = base[last] = std::byte{1};
}

void check(const Case& c) {
  const auto region =
      allocate({.length = c.length,
                .settings = {.type = c.type, .max_order = c.max, .min_order = c.min},
                .grants = c.grants});
  const auto [error, order] = expected(c);
  ASSERT_EQ(region ? 0 : region.error().code, error) << c;
  if (error != 0) return;
  const Obtained got = region.value().obtained();
  EXPECT_EQ(got.block_order, order) << c;
  EXPECT_EQ(got.backing == Backing::kBasePages, order == 12) << c;
  EXPECT_EQ(region.value().length(), c.length) << c;
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(region.value().base()) % (std::size_t{1} << order),
            0U);
  EXPECT_EQ(region.value().id() != 0, c.grants != 0) << c;
  expect_zeroed_and_usable(region.value());
  if (got.backing == Backing::kTransparentHugePages) {
    EXPECT_EQ(huge_kib(region.value().base()), (c.length + kHuge - 1) / kHuge * 2048) << c;
  }
}

void check_all(unsigned grants) {
  const bool huge_pages = huge_pages_exist(grants != 0);
  for (const AllocationType type : kTypes) {
    for (const unsigned min : {12U, 13U, 21U, 22U}) {
      for (const unsigned max : {12U, 20U, 21U, 23U}) {
        if (min > max) continue;
        for (const std::size_t length : {kPage, kHuge - kPage, kHuge, 2 * kHuge + kPage})
          check({type, min, max, length, grants, huge_pages});
      }
    }
  }
  EXPECT_TRUE(region_names().empty());
}

void without_huge_pages(const std::function<void()>& body) {
  if (!hugetlb_pool_is_empty()) GTEST_SKIP() << "the hugetlb pool has pages";
  in_own_shm([&] {
    ASSERT_EQ(::prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0), 0);
    EXPECT_FALSE(huge_pages_exist(false));
    EXPECT_FALSE(huge_pages_exist(true));
    body();
  });
}

TEST(Allocate, GivesPrivateMemoryTheBlocksOfItsSettings) {
  in_own_shm([] { check_all(0); });
}

TEST(Allocate, GivesSharedMemoryTheBlocksOfItsSettings) {
  in_own_shm([] { check_all(0600); });
}

TEST(Allocate, FallsBackToBasePagesOrFailsWhereThereAreNoLargerOnes) {
  without_huge_pages([] {
    check_all(0);
    check_all(0600);
  });
}

TEST(Allocate, LengthsThatAreNoPagesAreKeptWhereNothingIsShared) {
  for (const std::size_t length : {std::size_t{1}, kPage + 1, kHuge + 1}) {
    const auto region = allocate({.length = length});
    ASSERT_TRUE(region.ok());
    EXPECT_EQ(region.value().length(), length);
    expect_zeroed_and_usable(region.value());
    EXPECT_EQ(region.value().id(), 0U);
  }
}

TEST(Allocate, RefusesSenselessWishes) {
  in_own_shm([] {
    const auto error_of = [](const Wish& wish) {
      const auto region = allocate(wish);
      return region ? 0 : region.error().code;
    };
    EXPECT_EQ(error_of({.length = 0}), EINVAL);
    EXPECT_EQ(error_of({.length = 0, .grants = 0600}), EINVAL);
    EXPECT_EQ(error_of({.length = kPage + 1, .grants = 0600}), EINVAL);
    EXPECT_EQ(error_of({.length = kPage, .grants = 0700}), EINVAL);
    const AllocatorSettings anonymous{.type = AllocationType::kAnonymous};
    EXPECT_EQ(error_of({.length = kPage, .settings = anonymous, .grants = 0600}), EINVAL);
    for (const unsigned grants : {0U, 0600U}) {
      for (int bits = 46; bits < 64; ++bits) {
        for (const std::size_t less : {std::size_t{0}, kPage}) {
          const std::size_t length = (std::size_t{1} << bits) - less;
          const int error = error_of({.length = length, .grants = grants});
          EXPECT_TRUE(error == ENOMEM || error == ENOSPC || error == EFBIG)
              << length << ": " << error;
        }
      }
      EXPECT_EQ(error_of({.length = ~(kPage - 1), .grants = grants}), ENOMEM);
    }
    EXPECT_EQ(error_of({.length = ~std::size_t{0}}), ENOMEM);
    EXPECT_EQ(error_of({.length = ~std::size_t{0}, .grants = 0600}), EINVAL);
    EXPECT_TRUE(region_names().empty());
  });
}

TEST(Allocate, PutsMemoryExactlyAtAnAddressOrNowhere) {
  const auto range = os::Mapping::reserve(5 * kHuge);
  ASSERT_TRUE(range.ok());
  std::byte* const first = range.value().base();
  auto* const at = reinterpret_cast<std::byte*>((reinterpret_cast<std::uintptr_t>(first) + kHuge) &
                                                ~(kHuge - 1));
  const AllocatorSettings contiguous{.type = AllocationType::kContiguous, .min_order = 13};
  const auto error_of = [](const Result<RegionMemory>& r) { return r ? 0 : r.error().code; };
  EXPECT_EQ(error_of(allocate({.length = kHuge, .at = at})), EINVAL) << "not free";
  EXPECT_EQ(error_of(allocate({.length = kHuge, .settings = contiguous, .at = at})),
            huge_pages_exist(false) ? EINVAL : ENOMEM);
  ASSERT_EQ(::munmap(at, 4 * kHuge), 0);
  EXPECT_EQ(error_of(allocate({.length = kPage, .at = at + 1})), EINVAL);
  EXPECT_EQ(error_of(allocate({.length = kHuge, .settings = contiguous, .at = at + kPage})),
            ENOMEM);
  {
    const auto there = allocate({.length = kHuge + 1, .at = at});
    ASSERT_TRUE(there.ok()) << there.error().message;
    EXPECT_EQ(there.value().base(), at);
    EXPECT_EQ(there.value().obtained().block_order, huge_pages_exist(false) ? 21U : 12U);
    EXPECT_EQ(error_of(allocate({.length = 1, .at = at})), EINVAL);
  }
  const auto between = allocate({.length = 3 * kHuge, .at = at + kPage});
  ASSERT_TRUE(between.ok()) << between.error().message;
  EXPECT_EQ(between.value().base(), at + kPage);
  EXPECT_EQ(between.value().obtained().block_order, 12U);
}

TEST(Allocate, MemoryIsUnmappedAtTheEnd) {
  std::byte* base = nullptr;
  for (const std::size_t length : {kPage, kHuge}) {
    base = allocate({.length = length}).value().base();
    unsigned char there = 0;
    EXPECT_EQ(::mincore(base, kPage, &there), -1);
    EXPECT_EQ(errno, ENOMEM);
  }
}

// The file is backed when it is made: touching it raises no SIGBUS later.
TEST(Allocate, AFullFileSystemIsAnErrorThatLeavesNothing) {
  in_own_shm(
      [] {
        struct statvfs before {};
        ASSERT_EQ(::statvfs("/dev/shm", &before), 0);
        for (const std::size_t length : {std::size_t{1} << 20, kHuge, 8 * kHuge}) {
          for (const AllocationType type : {AllocationType::kAll, AllocationType::kContiguous}) {
            const auto region =
                allocate({.length = length + kPage, .settings = {.type = type}, .grants = 0600});
            ASSERT_FALSE(region.ok());
            EXPECT_EQ(region.error().code, ENOSPC) << region.error().message;
          }
        }
        struct statvfs after {};
        ASSERT_EQ(::statvfs("/dev/shm", &after), 0);
        EXPECT_EQ(after.f_bavail, before.f_bavail);
        EXPECT_EQ(after.f_favail, before.f_favail);
        expect_zeroed_and_usable(*share(0600, std::size_t{1} << 20));
      },
      "size=1m");
}

TEST(Allocate, AFileSystemWithoutFilesIsAnError) {
  in_own_shm(
      [] {
        const auto region = allocate({.length = kPage, .grants = 0600});
        ASSERT_FALSE(region.ok());
        EXPECT_EQ(region.error().code, ENOSPC);
      },
      "nr_inodes=1");
}

TEST(Allocate, TheLimitOfFileSizesIsAnErrorAndNoSignal) {
  in_own_shm([] {
    const rlimit limit{kPage, kPage};
    ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &limit), 0);
    for (const std::size_t length : {2 * kPage, kHuge}) {
      const auto region = allocate({.length = length, .grants = 0600});
      ASSERT_FALSE(region.ok());
      EXPECT_EQ(region.error().code, EFBIG);
    }
    EXPECT_NE(share(), nullptr);
    EXPECT_TRUE(allocate({.length = kHuge}).ok());
  });
}

}  // namespace
}  // namespace weft::shared_memory
