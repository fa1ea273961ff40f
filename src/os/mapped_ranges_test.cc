// SPDX-License-Identifier: BSD-2-Clause
// Which memory of this process may be read, or written to?
#include "os/mapped_ranges.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

namespace weft::os {
namespace {

TEST(MappedRanges, FollowMappingsAndProtections) {
  const auto page = static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
  auto* const memory = static_cast<char*>(
      mmap(nullptr, 6 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  ASSERT_NE(memory, MAP_FAILED);
  const auto at = [&](std::uint64_t number) {
    return reinterpret_cast<std::uint64_t>(memory) + number * page;
  };
  using Ranges = std::vector<AddressRange>;
  EXPECT_EQ(mapped_ranges({at(0) + 5, at(6) - 7}, true, true), (Ranges{{at(0) + 5, at(6) - 7}}));
  ASSERT_EQ(munmap(memory + page, page), 0);
  ASSERT_EQ(mprotect(memory + 3 * page, page, PROT_READ), 0);
  ASSERT_EQ(mprotect(memory + 5 * page, page, PROT_NONE), 0);
  const AddressRange all{at(0), at(6)};
  EXPECT_EQ(mapped_ranges(all, true, false), (Ranges{{at(0), at(1)}, {at(2), at(5)}}));
  EXPECT_EQ(mapped_ranges(all, false, true),
            (Ranges{{at(0), at(1)}, {at(2), at(3)}, {at(4), at(5)}}));
  EXPECT_EQ(mapped_ranges({at(1), at(2)}, false, false), Ranges());
  EXPECT_EQ(munmap(memory, page), 0);
  EXPECT_EQ(munmap(memory + 2 * page, 4 * page), 0);
}

}  // namespace
}  // namespace weft::os
