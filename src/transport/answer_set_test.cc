// SPDX-License-Identifier: BSD-2-Clause
// Is a set of answers what a set of numbers would be?
#include "transport/answer_set.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <set>

namespace weft::transport {
namespace {

constexpr std::uint32_t kMost = AnswerSet::kMost;

std::set<std::uint32_t> members(const AnswerSet& set) {
  std::set<std::uint32_t> all;
  for (std::uint32_t place = 0; place < kMost; ++place) {
    if (set.has(place)) all.insert(place);
  }
  return all;
}

TEST(AnswerSet, HoldsARunFromAnyPlaceToAnyOther) {
  for (std::uint32_t place = 0; place <= kMost; ++place) {
    for (std::uint32_t end = place; end <= kMost; ++end) {
      const AnswerSet set(place, end - place);
      ASSERT_EQ(set.empty(), place == end);
      ASSERT_EQ(set.first_from(0), place == end ? kMost : place);
      ASSERT_EQ(set.gap_from(place), place == end ? place : end);
      ASSERT_EQ(members(set).size(), end - place);
    }
  }
}

TEST(AnswerSet, DoesWhatASetOfNumbersDoes) {
  std::mt19937 random(1);
  const auto place = [&random] { return static_cast<std::uint32_t>(random() % kMost); };
  AnswerSet set;
  std::set<std::uint32_t> numbers;
  for (int step = 0; step < 20000; ++step) {
    const std::uint32_t at = place();
    switch (random() % 4) {
      case 0:
        set.add(at);
        numbers.insert(at);
        break;
      case 1:
        set.remove(at);
        numbers.erase(at);
        break;
      case 2: {
        const std::uint32_t count = place() % (kMost - at);
        const AnswerSet run(at, count);
        set = set.without(run);
        for (std::uint32_t i = at; i < at + count; ++i) numbers.erase(i);
        break;
      }
      default: {
        const AnswerSet run(at, std::min(kMost - at, 9U));
        set.add(run);
        for (const std::uint32_t i : members(run)) numbers.insert(i);
      }
    }
    ASSERT_EQ(members(set), numbers) << "after step " << step;
    const std::uint32_t from = place();
    const auto next = numbers.lower_bound(from);
    ASSERT_EQ(set.first_from(from), next == numbers.end() ? kMost : *next);
    std::uint32_t gap = from;
    while (numbers.contains(gap)) ++gap;
    ASSERT_EQ(set.gap_from(from), gap);
    ASSERT_EQ(set.empty(), numbers.empty());
  }
}

}  // namespace
}  // namespace weft::transport
