// SPDX-License-Identifier: BSD-2-Clause
// How much memory may peers make an endpoint keep, and how is it divided among them?
#include "base/budget.h"

#include <gtest/gtest.h>

#include <memory>
#include <vector>

namespace weft {
namespace {

std::size_t take_all(Budget::Share& share) {
  while (share.take(1)) continue;
  return share.held();
}

TEST(Budget, OneFlowGetsHalfAndTheNextHalfOfTheRest) {
  Budget budget({1200});
  Budget::Share first(budget);
  EXPECT_EQ(take_all(first), 600U);
  Budget::Share second(budget);
  EXPECT_EQ(take_all(second), 300U);
  EXPECT_FALSE(first.take(1));
  EXPECT_EQ(budget.used(), 900U);
}

TEST(Budget, AThousandFlowsStayBelowTheTotalAndTheirMinimums) {
  Budget budget({1'000'000, 32, 100});
  std::vector<std::unique_ptr<Budget::Share>> flows;
  for (int i = 0; i < 1000; ++i) {
    flows.push_back(std::make_unique<Budget::Share>(budget));
    EXPECT_GE(take_all(*flows.back()), 100U) << "no flow is left without";
    EXPECT_TRUE(i > 50 || budget.used() < 900'000U) << "the first do not get all";
  }
  EXPECT_LE(budget.used(), 1'100'000U);
  flows.clear();
  EXPECT_EQ(budget.used(), 0U);
}

TEST(Budget, AReturnedAmountCanBeTakenAgain) {
  Budget budget({100});
  Budget::Share share(budget);
  ASSERT_TRUE(share.take(50));
  ASSERT_FALSE(share.take(1));
  share.give(20);
  EXPECT_TRUE(share.take(20));
  EXPECT_FALSE(share.take(~std::size_t{0})) << "no sum wraps";
}

TEST(Budget, AChargeIsNeverRefusedAndHoldsBackAllOthers) {
  Budget budget({100});
  Budget::Share one(budget);
  one.charge(1000);
  Budget::Share another(budget);
  EXPECT_FALSE(another.take(1));
  EXPECT_TRUE(another.take(0));
  EXPECT_EQ(budget.limit(), 0U);
  one.give(1000);
  EXPECT_TRUE(another.take(1));
}

TEST(Budget, WhereItIsPlentifulEveryFlowMayTake) {
  for (const std::size_t divisor : {1, 32}) {
    Budget budget({1000, divisor});
    Budget::Share share(budget);
    while (budget.is_plentiful(7)) ASSERT_TRUE(share.take(7));
    EXPECT_GE(budget.used(), 1000 / (divisor + 1) - 7);
  }
}

}  // namespace
}  // namespace weft
