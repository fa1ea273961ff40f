// SPDX-License-Identifier: BSD-2-Clause
// Which memory of this process may be read, or written to?
#include "os/mapped_ranges.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

namespace weft::os {
namespace {

// By the kernel's answer to a question, and by its text.
class MappedRanges : public testing::TestWithParam<decltype(&mapped_ranges)> {
 protected:
  static std::vector<AddressRange> ranges(const AddressRange& within, bool readable,
                                          bool writable) {
    const auto found = GetParam()(within, readable, writable);
    EXPECT_TRUE(found.ok());
    return found.ok() ? found.value() : std::vector<AddressRange>();
  }
};

TEST_P(MappedRanges, FollowMappingsAndProtections) {
  const auto page = static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
  auto* const memory = static_cast<char*>(
      mmap(nullptr, 6 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  ASSERT_NE(memory, MAP_FAILED);
  const auto at = [&](std::uint64_t number) {
    return reinterpret_cast<std::uint64_t>(memory) + number * page;
  };
  using Ranges = std::vector<AddressRange>;
  EXPECT_EQ(ranges({at(0) + 5, at(6) - 7}, true, true), (Ranges{{at(0) + 5, at(6) - 7}}));
  ASSERT_EQ(munmap(memory + page, page), 0);
  ASSERT_EQ(mprotect(memory + 3 * page, page, PROT_READ), 0);
  ASSERT_EQ(mprotect(memory + 5 * page, page, PROT_NONE), 0);
  const AddressRange all{at(0), at(6)};
  EXPECT_EQ(ranges(all, true, false), (Ranges{{at(0), at(1)}, {at(2), at(5)}}));
  EXPECT_EQ(ranges(all, false, true), (Ranges{{at(0), at(1)}, {at(2), at(3)}, {at(4), at(5)}}));
  EXPECT_EQ(ranges({at(1), at(2)}, false, false), Ranges());
  EXPECT_EQ(munmap(memory, page), 0);
  EXPECT_EQ(munmap(memory + 2 * page, 4 * page), 0);
}

INSTANTIATE_TEST_SUITE_P(Ways, MappedRanges,
                         testing::Values(&mapped_ranges, &mapped_ranges_by_text));

}  // namespace
}  // namespace weft::os
