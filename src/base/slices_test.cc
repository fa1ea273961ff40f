// SPDX-License-Identifier: BSD-2-Clause
// Does cutting a scattered buffer name exactly the bytes asked for?
#include "base/slices.h"

#include <gtest/gtest.h>

#include <array>
#include <string>

namespace weft {
namespace {

// "abc", "", "defgh", "i" as four SGEs of one text.
struct Scattered {
  std::string text = "abcdefghi";
  std::array<LocalRange, 4> sges{
      {{text.data(), 3}, {text.data() + 3, 0}, {text.data() + 3, 5}, {text.data() + 8, 1}}};
};

std::string read(std::span<const LocalRange> sges) {
  std::string bytes;
  for (const LocalRange& sge : sges) {
    bytes.append(static_cast<const char*>(sge.base), sge.length);
  }
  return bytes;
}

TEST(TotalLength, IsTheSumOfAllSges) {
  EXPECT_EQ(total_length({}), 0U);
  EXPECT_EQ(total_length(Scattered().sges), 9U);
}

TEST(TotalLength, SaturatesInsteadOfWrapping) {
  const std::array<LocalRange, 2> sges{{{nullptr, SIZE_MAX}, {nullptr, 1}}};
  EXPECT_EQ(total_length(sges), SIZE_MAX);
}

TEST(Slice, EveryCutHoldsExactlyTheBytesItNames) {
  const Scattered from;
  for (std::size_t offset = 0; offset <= from.text.size(); ++offset) {
    for (std::size_t length = 0; offset + length <= from.text.size(); ++length) {
      std::array<LocalRange, 4> out{};
      const std::size_t count = slice(from.sges, offset, length, out.data());
      ASSERT_LE(count, out.size());
      EXPECT_EQ(read({out.data(), count}), from.text.substr(offset, length));
    }
  }
}

TEST(Slice, BytesPastTheEndAreLeftOut) {
  const Scattered from;
  std::array<LocalRange, 4> out{};
  EXPECT_EQ(read({out.data(), slice(from.sges, 7, 100, out.data())}), "hi");
  EXPECT_EQ(slice(from.sges, 9, 1, out.data()), 0U);
}

}  // namespace
}  // namespace weft
