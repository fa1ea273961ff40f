// SPDX-License-Identifier: BSD-2-Clause
// Does a region table take only as much memory as its regions, and do its users see all of them?
#include "memory/table_memory.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include "memory/access_guard.h"
#include "memory/region_table.h"
#include "os/own_process_support.h"
#include "os/test_directory_support.h"

namespace weft::memory {
namespace {

constexpr DomainId kDomain{1};
constexpr std::uint64_t kRegions = 5000;  // take 80 pages of slots and, with their index, 16 more
constexpr std::size_t kBytesOfRegions = kRegions * (sizeof(RegionSlot) + 16);

void add_regions(RegionTable& table) {
  for (std::uint64_t key = 0; key < kRegions; ++key) {
    const RegionAttributes attributes{
        .domain = kDomain, .access = Access::kRemoteRead, .base = 4096, .length = 1, .key = {key}};
    ASSERT_TRUE(table.add(attributes).ok());
  }
}

std::uint64_t regions_found_by(const std::shared_ptr<RegionTableView>& table) {
  const auto guard = std::move(AccessGuard::attach(table)).value();
  std::uint64_t found = 0;
  for (std::uint64_t key = 0; key < kRegions; ++key) {
    const RemoteRange range{0, 1, {key}};
    if (guard->check_and_pin(kDomain, Access::kRemoteRead, {&range, 1}).ok()) ++found;
  }
  return found;
}

// The table grew after the user opened it, and its index moved to the other bank and back.
TEST(TableMemory, AUserFindsRegionsThatItDidNotMap) {
  const os::TestDirectory directory;
  const auto table = std::move(RegionTable::create(directory.path())).value();
  const auto user = RegionTableView::open(directory.path(), table->name()).value();
  EXPECT_EQ(regions_found_by(user), 0U);
  add_regions(*table);
  EXPECT_EQ(regions_found_by(user), kRegions);
  EXPECT_EQ(regions_found_by(table->for_owner()), kRegions);
}

TEST(TableMemory, ATableWithoutAFileServesItsProcess) {
  const auto table = std::move(RegionTable::create("")).value();
  add_regions(*table);
  EXPECT_EQ(regions_found_by(table->for_owner()), kRegions);
}

// Twice the memory of its regions, for it is mapped in steps that double; and three more for that
// of the process.
TEST(TableMemory, LockedMemoryIsThatOfItsRegions) {
  const os::TestDirectory directory;
  os::in_own_process("locked memory", [&] {
    if (!os::lock_memory()) return false;
    const std::size_t before = os::resident_bytes();
    const auto table = std::move(RegionTable::create(directory.path())).value();
    add_regions(*table);
    const auto user = RegionTableView::open(directory.path(), table->name()).value();
    EXPECT_EQ(regions_found_by(user), kRegions);
    os::lock_memory();
    struct stat info {};
    EXPECT_EQ(::stat((directory.path() + "/" + table->name()).c_str(), &info), 0);
    const auto file = static_cast<std::size_t>(info.st_blocks) * 512;
    EXPECT_LE(file, 3 * kBytesOfRegions);
    EXPECT_LE(os::resident_bytes() - before, 9 * kBytesOfRegions);
    return true;
  });
}

}  // namespace
}  // namespace weft::memory
