// SPDX-License-Identifier: BSD-2-Clause
// Are counters named, summed by group and shown as they were counted?
#include "base/stats.h"

#include <gtest/gtest.h>

#include <set>
#include <thread>

namespace weft {
namespace {

TEST(Stats, BeginAtZero) {
  const Stats stats;
  EXPECT_EQ(stats.of(Stat::kPacketsSent), 0U);
  EXPECT_EQ(text_of(stats), "");
}

TEST(Stats, EachCounterHasItsOwnName) {
  std::set<std::string_view> names;
  for (std::size_t i = 0; i < kStats; ++i) {
    const std::string_view name = name_of(static_cast<Stat>(i));
    EXPECT_FALSE(name.empty());
    EXPECT_LT(name.size(), 32U) << "the field of the shared page";
    names.insert(name);
  }
  EXPECT_EQ(names.size(), kStats);
}

TEST(Stats, TheTextHasTheCountersThatAreNotZeroInTheirOrder) {
  Stats stats;
  stats.add(Stat::kDatagramsNoPeer);
  stats.add(Stat::kIcrcErrors, 3);
  EXPECT_EQ(text_of(stats), "icrc_errors 3, datagrams_no_peer 1");
}

TEST(Stats, DroppedPacketsAreThoseThatNoFlowTook) {
  Stats stats;
  stats.add(Stat::kMalformedPackets, 1);
  stats.add(Stat::kRelayedFromWeft, 2);
  stats.add(Stat::kEcnMarked, 4);
  stats.add(Stat::kDuplicateRequests, 8);
  EXPECT_EQ(stats.dropped(), 3U);
}

TEST(Stats, SharedAdditionsOfSeveralThreadsAreAllCounted) {
  Stats stats;
  const auto add = [&] {
    for (int i = 0; i < 10'000; ++i) stats.add_shared(Stat::kRelayDelivered);
  };
  std::thread one(add);
  std::thread two(add);
  one.join();
  two.join();
  EXPECT_EQ(stats.of(Stat::kRelayDelivered), 20'000U);
}

}  // namespace
}  // namespace weft
