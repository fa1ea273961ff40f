// SPDX-License-Identifier: BSD-2-Clause
// Does each communication id rest before it is given again, and can none be predicted?
#include "id_numbers.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <set>
#include <vector>

namespace weft::cm {
namespace {

std::vector<std::uint16_t> order_of(IdNumbers& numbers) {
  std::vector<std::uint16_t> order(IdNumbers::kLast);
  for (std::uint16_t& each : order) each = numbers.next();
  return order;
}

// So many numbers stand at the same place in both orders.
std::size_t common_places(const std::vector<std::uint16_t>& a,
                          const std::vector<std::uint16_t>& b) {
  std::size_t common = 0;
  for (std::size_t i = 0; i < a.size(); ++i) common += a[i] == b[i] ? 1 : 0;
  return common;
}

TEST(IdNumbers, AreEachGivenOnceBeforeAnyIsGivenAgain) {
  IdNumbers numbers(1);
  for (int round = 0; round < 3; ++round) {
    const auto order = order_of(numbers);
    const std::set<std::uint16_t> all(order.begin(), order.end());
    EXPECT_EQ(all.size(), order.size());
    EXPECT_FALSE(all.contains(0));
  }
}

// Two random orders have one number in common on average, ten with a probability of 10^-7.
TEST(IdNumbers, HaveAnotherOrderInEachRoundAndForEachKey) {
  IdNumbers numbers(1);
  const auto first = order_of(numbers);
  EXPECT_LT(common_places(first, order_of(numbers)), 10U);
  IdNumbers others(2);
  EXPECT_LT(common_places(first, order_of(others)), 10U);
}

// In a random order a distance of at most 256 follows in one of 128 cases.
TEST(IdNumbers, AreNotNearTheLastOne) {
  IdNumbers numbers(1);
  const auto order = order_of(numbers);
  std::size_t near = 0;
  for (std::size_t i = 1; i < order.size(); ++i) near += std::abs(order[i] - order[i - 1]) <= 256;
  EXPECT_NEAR(static_cast<double>(near), order.size() / 128.0, 100);
}

}  // namespace
}  // namespace weft::cm
