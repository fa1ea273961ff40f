// SPDX-License-Identifier: BSD-2-Clause
// Do objects of a pool stay where they are and belong to one user at a time?
#include "messaging/pool.h"

#include <gtest/gtest.h>

#include <set>

namespace weft::messaging {
namespace {

struct Thing {
  int value = 0;
};

TEST(Pool, ObjectsThatAreTakenAreDistinct) {
  Pool<Thing> pool;
  std::set<Thing*> taken;
  for (int i = 0; i < 10'000; ++i) taken.insert(&pool.take());
  EXPECT_EQ(taken.size(), 10'000u);
}

TEST(Pool, AReturnedObjectIsTakenBeforeANewOneIsMade) {
  Pool<Thing> pool;
  std::set<Thing*> first;
  for (int i = 0; i < 100; ++i) first.insert(&pool.take());
  for (Thing* object : first) pool.give(*object);
  std::set<Thing*> second;
  for (int i = 0; i < 100; ++i) second.insert(&pool.take());
  EXPECT_EQ(first, second);
}

TEST(Pool, AnObjectKeepsItsAddressAndStateWhileThePoolGrows) {
  Pool<Thing> pool;
  Thing& object = pool.take();
  object.value = 42;
  for (int i = 0; i < 10'000; ++i) pool.take().value = i;
  EXPECT_EQ(object.value, 42);
  pool.give(object);
  EXPECT_EQ(&pool.take(), &object);
}

}  // namespace
}  // namespace weft::messaging
