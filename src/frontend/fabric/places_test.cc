// SPDX-License-Identifier: BSD-2-Clause
// Are there as many places as the count says, whichever threads take them and give them back?
#include "places.h"

#include <gtest/gtest.h>

#include <atomic>
#include <optional>
#include <thread>
#include <vector>

#include "offer.h"

namespace weft::fabric {
namespace {

TEST(Places, AreRefusedWhenAllAreTaken) {
  Places places("test", 2);
  std::optional<Places::Reservation> first = places.take();
  Places::Reservation second = places.take();
  EXPECT_TRUE(*first && second);
  EXPECT_FALSE(places.take());
  first.reset();
  Places::Reservation third = places.take();
  EXPECT_TRUE(third);
  EXPECT_FALSE(places.take());
}

TEST(Places, AreGivenBackOnce) {
  Places places("test", 1);
  {
    Places::Reservation first = places.take();
    const Places::Reservation moved = std::move(first);
    EXPECT_TRUE(moved);
    EXPECT_FALSE(places.take());
  }
  const Places::Reservation again = places.take();
  EXPECT_TRUE(again);
  EXPECT_FALSE(places.take());
}

// A thread that is refused takes the place of none that is not.
TEST(Places, SufficeForThreadsThatAreAsMany) {
  constexpr int kThreads = 3;
  Places places("test", kThreads);
  std::atomic<int> refused{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&] {
      for (int round = 0; round < 10'000; ++round) {
        if (!places.take()) ++refused;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(refused, 0);
}

TEST(DomainPlaces, AreAsManyAsIsSaidOrOffered) {
  Terms terms;
  terms.endpoints = 2;
  fi_domain_attr attributes{};
  attributes.cntr_cnt = 1;
  DomainPlaces places(attributes, terms);
  const Places::Reservation one = places.counters.take();
  EXPECT_TRUE(one);
  EXPECT_FALSE(places.counters.take());
  const Places::Reservation first = places.endpoints.take();
  const Places::Reservation second = places.endpoints.take();
  EXPECT_FALSE(places.endpoints.take());
  EXPECT_EQ(places.sharing_transmit, 2u);
  attributes.max_ep_stx_ctx = 1;
  EXPECT_EQ(DomainPlaces(attributes, terms).sharing_transmit, 1u);
}

}  // namespace
}  // namespace weft::fabric
