// SPDX-License-Identifier: BSD-2-Clause
// Does reserved address space stay empty until it is filled, whatever the program locks?
#include "os/mapping.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include "os/own_process_support.h"
#include "os/shared_file.h"
#include "os/test_directory_support.h"

namespace weft::os {
namespace {

constexpr std::size_t kPage = 4096;
constexpr std::size_t kLarge = std::size_t{64} << 20;

TEST(Mapping, FilledPartsAreApart) {
  const TestDirectory directory;
  const auto file = SharedFile::create(directory.path() + "/file", kLarge).value();
  ASSERT_TRUE(file->reserve(3 * kPage, kPage).ok());
  const auto whole = std::move(Mapping::reserve(kLarge)).value();
  ASSERT_TRUE(file->map_into(whole, 5 * kPage, 3 * kPage, kPage).ok());
  ASSERT_TRUE(whole.fill(7 * kPage, -1, 0, kPage).ok());
  *whole.at<int>(5 * kPage) = 1;
  EXPECT_EQ(*whole.at<int>(7 * kPage), 0);
  *whole.at<int>(7 * kPage) = 2;
  EXPECT_EQ(*file->map(3 * kPage, kPage).value().at<int>(0), 1);
}

TEST(Mapping, APartThatBeginsWithinAPageIsMappedWithWholePages) {
  const TestDirectory directory;
  const auto file = SharedFile::create(directory.path() + "/file", 4 * kPage).value();
  const auto whole = std::move(Mapping::reserve(4 * kPage)).value();
  ASSERT_TRUE(file->map_into(whole, kPage + 512, kPage + 512, kPage).ok());
  *whole.at<int>(kPage) = 1;
  *whole.at<int>(3 * kPage - 4) = 2;
  const auto all = file->map(0, 4 * kPage);
  EXPECT_EQ(*all.value().at<int>(kPage), 1);
  EXPECT_EQ(*all.value().at<int>(3 * kPage - 4), 2);
}

TEST(Mapping, APartBeyondTheEndOfTheFileIsNotMapped) {
  const TestDirectory directory;
  const auto file = SharedFile::create(directory.path() + "/file", 4 * kPage).value();
  const auto whole = std::move(Mapping::reserve(8 * kPage)).value();
  const Status mapped = file->map_into(whole, 3 * kPage, 3 * kPage, 2 * kPage);
  ASSERT_FALSE(mapped.ok());
  EXPECT_EQ(mapped.error().code, EINVAL);
}

TEST(Mapping, LiesAtItsOnlyPlaceOrNowhere) {
  auto range = std::move(Mapping::reserve(2 * kPage)).value();
  const Placement how{.at = range.base(), .only_there = true};
  const auto taken = Mapping::place(kPage, how);
  ASSERT_FALSE(taken.ok());
  EXPECT_EQ(taken.error().code, EINVAL);
  range.reset();
  const auto there = Mapping::place(kPage, how);
  ASSERT_TRUE(there.ok());
  EXPECT_EQ(there.value().base(), how.at);
  EXPECT_EQ(there.value().length(), kPage);
}

TEST(Mapping, LiesElsewhereAtAMultipleOfItsAlignment) {
  const auto range = std::move(Mapping::reserve(2 * kPage)).value();
  for (const std::size_t alignment : {std::size_t{1}, kPage, kLarge}) {
    const auto first =
        std::move(Mapping::place(kPage, {.at = range.base(), .alignment = alignment})).value();
    const auto next = std::move(Mapping::place(kPage, {.alignment = alignment})).value();
    EXPECT_NE(first.base(), range.base());
    EXPECT_NE(first.base(), next.base());
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(first.base()) % alignment, 0U);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(next.base()) % alignment, 0U);
    *first.at<int>(0) = 1;
    EXPECT_EQ(*next.at<int>(0), 0);
  }
}

TEST(Mapping, AReservedRangeStaysEmptyWhereMemoryIsLocked) {
  in_own_process("locked memory", [] {
    if (!lock_memory()) return false;
    const std::size_t before = resident_bytes();
    const auto whole = std::move(Mapping::reserve(kLarge)).value();
    EXPECT_TRUE(whole.fill(kPage, -1, 0, kPage).ok());
    lock_memory();
    EXPECT_LT(resident_bytes() - before, kLarge / 16);
    *whole.at<int>(kPage) = 1;
    return true;
  });
}

TEST(Mapping, AReservedRangeDoesNotCountAsLocked) {
  in_own_process("locked memory", [] {
    const rlimit limit{kLarge / 16, kLarge / 16};
    if (::setrlimit(RLIMIT_MEMLOCK, &limit) != 0 || !give_up_capabilities()) return false;
    if (!lock_memory(MCL_FUTURE)) return false;
    const auto whole = Mapping::reserve(kLarge);
    EXPECT_TRUE(whole.ok());
    if (!whole.ok()) return true;
    EXPECT_TRUE(whole.value().fill(0, -1, 0, kPage).ok());
    EXPECT_FALSE(whole.value().fill(kPage, -1, 0, kLarge / 8).ok()) << "what is filled counts";
    return true;
  });
}

}  // namespace
}  // namespace weft::os
