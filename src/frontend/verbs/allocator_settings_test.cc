// SPDX-License-Identifier: BSD-2-Clause
// Are the allocator's variables taken when they make sense, and reported when they do not?
#include "allocator_settings.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <string>
#include <vector>

namespace weft::verbs {
namespace {

using shared_memory::AllocationType;
using shared_memory::AllocatorSettings;

constexpr char kType[] = "MLX_MR_ALLOC_TYPE";
constexpr char kMax[] = "MLX_MR_MAX_LOG2_CONTIG_BSIZE";
constexpr char kMin[] = "MLX_MR_MIN_LOG2_CONTIG_BSIZE";

class AllocatorVariables : public testing::Test {
 protected:
  AllocatorVariables() { clear(); }
  ~AllocatorVariables() override { clear(); }
  static void clear() {
    for (const char* name : {kType, kMax, kMin}) ::unsetenv(name);
  }
  AllocatorSettings read() {
    warnings_.clear();
    return read_allocator_settings([&](const std::string& line) { warnings_.push_back(line); });
  }
  AllocationType type_of(const char* text) {
    ::setenv(kType, text, 1);
    return read().type;
  }
  void expect_orders(unsigned least, unsigned most, std::size_t notes) {
    const AllocatorSettings settings = read();
    EXPECT_EQ(settings.min_order, least);
    EXPECT_EQ(settings.max_order, most);
    EXPECT_EQ(warnings_.size(), notes);
  }
  std::vector<std::string> warnings_;
};

TEST_F(AllocatorVariables, AreAllAndTheWholeRangeByDefault) {
  EXPECT_EQ(read().type, AllocationType::kAll);
  expect_orders(12, 23, 0);
}

TEST_F(AllocatorVariables, NameTheTypeInLettersOfEitherCase) {
  for (const char* text : {"ANON", "anon", "Anon"}) {
    EXPECT_EQ(type_of(text), AllocationType::kAnonymous) << text;
  }
  for (const char* text : {"CONTIG", "contig", "ConTig"}) {
    EXPECT_EQ(type_of(text), AllocationType::kContiguous) << text;
  }
  EXPECT_EQ(type_of("all"), AllocationType::kAll);
  EXPECT_TRUE(warnings_.empty());
}

TEST_F(AllocatorVariables, TakeTypesOfQueuesForAll) {
  for (const char* text : {"HUGE", "prefer_huge", "PREFER_CONTIG"}) {
    EXPECT_EQ(type_of(text), AllocationType::kAll) << text;
    EXPECT_TRUE(warnings_.empty()) << text;
  }
}

TEST_F(AllocatorVariables, ReportAnUnknownType) {
  for (const char* text : {"CONTIGUOUS", "ANO", " ANON", "1"}) {
    EXPECT_EQ(type_of(text), AllocationType::kAll) << text;
    ASSERT_EQ(warnings_.size(), 1U) << text;
    EXPECT_NE(warnings_.front().find(text), std::string::npos) << warnings_.front();
  }
}

TEST_F(AllocatorVariables, LimitTheBlocks) {
  ::setenv(kMin, "16", 1);
  expect_orders(16, 23, 0);
  ::setenv(kMax, "16", 1);
  expect_orders(16, 16, 0);
  ::setenv(kMin, "12", 1);
  ::setenv(kMax, "23", 1);
  expect_orders(12, 23, 0);
}

TEST_F(AllocatorVariables, ReportOrdersOutsideOfTheRange) {
  for (const char* text : {"11", "24", "0", "-1", "20x", "0x14", "99999999999", "twenty"}) {
    ::setenv(kMin, text, 1);
    ::setenv(kMax, "20", 1);
    expect_orders(12, 20, 1);
    ::setenv(kMin, "13", 1);
    ::setenv(kMax, text, 1);
    expect_orders(13, 23, 1);
  }
}

TEST_F(AllocatorVariables, ReportAMinimumAboveTheMaximum) {
  ::setenv(kMin, "20", 1);
  ::setenv(kMax, "16", 1);
  expect_orders(12, 23, 1);
}

}  // namespace
}  // namespace weft::verbs
