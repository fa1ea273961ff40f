// SPDX-License-Identifier: BSD-2-Clause
// Does a barrier raised by one thread order the stores of another that does not fence?
#include "os/barrier.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

namespace weft::os {
namespace {

TEST(RemoteBarrier, ThisProcessHeedsBarriersExactlyWhereTheyCanBeRaised) {
  EXPECT_EQ(heeds_remote_barriers(), can_raise_remote_barriers());
  EXPECT_EQ(heeds_remote_barriers(), heeds_remote_barriers());
}

// One store and one load on either side, of words that no other round touches.
struct alignas(64) Round {
  std::atomic<int> frequent{0};
  alignas(64) std::atomic<int> rare{0};
  int frequent_saw = 0;
  int rare_saw = 0;
};

TEST(RemoteBarrier, TwoSidesThatStoreAndThenLoadNeverBothMissEachOther) {
  constexpr std::size_t kRounds = 3000;
  std::vector<Round> rounds(kRounds);
  std::atomic<std::size_t> started{0};
  const bool must_fence = !heeds_remote_barriers();
  std::thread frequent([&] {
    for (std::size_t i = 0; i < kRounds; ++i) {
      while (started.load(std::memory_order_acquire) <= i) std::this_thread::yield();
      rounds[i].frequent.store(1, std::memory_order_relaxed);
      if (must_fence) std::atomic_thread_fence(std::memory_order_seq_cst);
      std::atomic_signal_fence(std::memory_order_seq_cst);
      rounds[i].frequent_saw = rounds[i].rare.load(std::memory_order_relaxed);
    }
  });
  for (Round& round : rounds) {
    started.fetch_add(1, std::memory_order_release);
    round.rare.store(1, std::memory_order_relaxed);
    remote_barrier();
    round.rare_saw = round.frequent.load(std::memory_order_relaxed);
  }
  frequent.join();
  int missed = 0;
  for (const Round& round : rounds) missed += round.frequent_saw == 0 && round.rare_saw == 0;
  EXPECT_EQ(missed, 0);
}

}  // namespace
}  // namespace weft::os
