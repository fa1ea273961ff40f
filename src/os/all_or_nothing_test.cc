// SPDX-License-Identifier: BSD-2-Clause
// Is memory changed as a whole, or not at all and without a signal?
#include "os/all_or_nothing.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>
#include <thread>

namespace weft::os {
namespace {

constexpr std::size_t kPage = 4096;
constexpr int kTries = 1000;  // one may fail for reasons of its own

template <class Work>
bool some_try(const Work& work) {
  for (int i = 0; i < kTries; ++i) {
    if (all_or_nothing(work)) return true;
  }
  return false;
}

// Three pages: one that may be written and holds 'a', one that may be read, one that is missing.
struct AllOrNothingTest : ::testing::Test {
  char* pages = static_cast<char*>(
      ::mmap(nullptr, 3 * kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));

  AllOrNothingTest() {
    std::memset(pages, 'a', 3 * kPage);
    ::mprotect(pages + kPage, kPage, PROT_READ);
    ::munmap(pages + 2 * kPage, kPage);
  }
  ~AllOrNothingTest() override { ::munmap(pages, 2 * kPage); }
};

TEST_F(AllOrNothingTest, WhatMayBeDoneIsDoneWhereTheProcessorCan) {
  const auto write = [&](char what) { std::memset(pages, what, 64); };
  write('a');  // the linker finds a function at its first call, which no transaction survives
  const bool done = some_try([&] { write('b'); });
  EXPECT_EQ(done, has_transactions());
  EXPECT_EQ(std::string(pages, 65), std::string(64, done ? 'b' : 'a') + "a");
}

TEST_F(AllOrNothingTest, WhatTouchesAForbiddenPageLeavesNothingBehind) {
  for (const std::size_t forbidden : {kPage, 2 * kPage}) {
    EXPECT_FALSE(some_try([&] {
      std::memset(pages, 'b', 64);
      *static_cast<volatile char*>(pages + forbidden) = 'b';
    }));
  }
  char seen = 0;
  EXPECT_FALSE(some_try([&] { seen = *static_cast<volatile char*>(pages + 2 * kPage); }));
  EXPECT_EQ(seen, 0);
  EXPECT_EQ(std::string(pages, 64), std::string(64, 'a'));
}

TEST_F(AllOrNothingTest, ASystemCallIsNotCarriedOutWithinIt) {
  EXPECT_FALSE(some_try([] { ::getppid(); }));
}

// Under ThreadSanitizer hardly any transaction succeeds.
TEST_F(AllOrNothingTest, ThreadsThatAddLoseNoCount) {
  std::uint64_t sum = 0;
  const auto add = [&sum](std::uint64_t& done) {
    for (int i = 0; i < 20'000; ++i) done += all_or_nothing([&sum] { sum += 1; }) ? 1 : 0;
  };
  std::uint64_t here = 0;
  std::uint64_t there = 0;
  std::thread other([&] { add(there); });
  add(here);
  other.join();
  EXPECT_EQ(sum, here + there);
}

TEST(ForgoTransactions, NothingIsDoneAfterwards) {
  EXPECT_EXIT(
      {
        forgo_transactions();
        int seen = 0;
        const bool done = some_try([&seen] { seen = 1; });
        ::_exit(!done && seen == 0 ? 0 : 1);
      },
      ::testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace weft::os
