// SPDX-License-Identifier: BSD-2-Clause
// Do numbers and addresses always belong together as fi_av(3) says?
#include "messaging/address_vector.h"

#include <gtest/gtest.h>

#include <map>
#include <random>
#include <set>
#include <thread>

#include "test_support.h"

namespace weft::messaging {
namespace {

using testing::loopback;

TEST(AddressVector, NumbersAreGivenOutFromZero) {
  AddressVector addresses(4);
  for (PeerIndex i = 0; i < 10; ++i) {
    EXPECT_EQ(addresses.insert(loopback(static_cast<std::uint16_t>(100 + i))), i);
  }
}

TEST(AddressVector, TheLowestFreeNumberIsGivenOutNext) {
  AddressVector addresses(4);
  for (std::uint16_t i = 0; i < 8; ++i) addresses.insert(loopback(i));
  for (const PeerIndex i : {5, 2, 7}) EXPECT_TRUE(addresses.remove(i));
  for (const PeerIndex i : {2, 5, 7, 8}) EXPECT_EQ(addresses.insert(loopback(99)), i);
}

TEST(AddressVector, AnAddressThatIsAddedTwiceIsReportedUnderItsLowestNumber) {
  AddressVector addresses(4);
  addresses.insert(loopback(1));
  const PeerIndex low = addresses.insert(loopback(2));
  const PeerIndex high = addresses.insert(loopback(2));
  EXPECT_EQ(addresses.lookup(loopback(2)), low);
  EXPECT_EQ(addresses.canonical(high), low);
  addresses.remove(low);
  EXPECT_EQ(addresses.lookup(loopback(2)), high);
  EXPECT_EQ(addresses.canonical(low), kNoPeer);
}

TEST(AddressVector, ARemovedNumberIsUnknownAndCannotBeRemovedAgain) {
  AddressVector addresses(4);
  const PeerIndex index = addresses.insert(loopback(1));
  EXPECT_TRUE(addresses.remove(index));
  EXPECT_FALSE(addresses.remove(index));
  EXPECT_FALSE(addresses.remove(77));
  EXPECT_FALSE(addresses.remove(kNoPeer));
  EXPECT_FALSE(addresses.find(index).has_value());
  EXPECT_FALSE(addresses.find(kNoPeer).has_value());
}

TEST(AddressVector, EveryUseOfANumberHasAStampOfItsOwnAndChangesTheVersion) {
  AddressVector addresses(4);
  std::set<std::uint64_t> stamps;
  std::set<std::uint64_t> versions{addresses.version()};
  for (int i = 0; i < 100; ++i) {
    const PeerIndex index = addresses.insert(loopback(1));
    EXPECT_EQ(index, 0u);
    EXPECT_TRUE(stamps.insert(addresses.find(index)->stamp).second);
    EXPECT_TRUE(versions.insert(addresses.version()).second);
    addresses.remove(index);
    EXPECT_TRUE(versions.insert(addresses.version()).second);
  }
  EXPECT_FALSE(stamps.contains(0));
}

TEST(AddressVector, BehavesAsAMapOfNumbersOverThousandsOfOperations) {
  for (std::uint32_t seed = 1; seed <= 5; ++seed) {
    std::mt19937 random(seed);
    AddressVector addresses(1);
    std::map<PeerIndex, std::uint16_t> model;
    for (int step = 0; step < 4000; ++step) {
      const auto port = static_cast<std::uint16_t>(random() % 40);
      if (random() % 2 == 0) {
        PeerIndex lowest = 0;
        while (model.contains(lowest)) ++lowest;
        ASSERT_EQ(addresses.insert(loopback(port)), lowest) << "seed " << seed << " step " << step;
        model[lowest] = port;
      } else {
        const PeerIndex index = random() % 60;
        ASSERT_EQ(addresses.remove(index), model.erase(index) == 1);
      }
      PeerIndex expected = kNoPeer;
      for (const auto& [index, known] : model) {
        if (known == port) expected = std::min(expected, index);
      }
      ASSERT_EQ(addresses.lookup(loopback(port)), expected) << "seed " << seed << " step " << step;
      const PeerIndex index = random() % 60;
      ASSERT_EQ(addresses.find(index).has_value(), model.contains(index));
      if (model.contains(index)) {
        ASSERT_EQ(addresses.find(index)->address.port(), model[index]);
        ASSERT_EQ(addresses.canonical(index), addresses.lookup(loopback(model[index])));
      } else {
        ASSERT_EQ(addresses.canonical(index), kNoPeer);
      }
    }
  }
}

TEST(AddressVector, ThreadsMayAddAndRemoveAtOnce) {
  AddressVector addresses(4);
  std::vector<std::thread> threads;
  for (std::uint16_t t = 0; t < 3; ++t) {
    threads.emplace_back([&addresses, t] {
      for (int i = 0; i < 500; ++i) {
        const PeerIndex index = addresses.insert(loopback(t));
        const auto found = addresses.find(index);
        EXPECT_TRUE(found && found->address.port() == t);
        EXPECT_TRUE(addresses.remove(index));
      }
    });
  }
  for (auto& thread : threads) thread.join();
  for (std::uint16_t t = 0; t < 3; ++t) EXPECT_EQ(addresses.lookup(loopback(t)), kNoPeer);
}

}  // namespace
}  // namespace weft::messaging
