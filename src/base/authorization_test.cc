// SPDX-License-Identifier: BSD-2-Clause
// Do keys have numbers and hashes by which they are told apart, and do they go with their users?
#include "base/authorization.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <new>
#include <set>
#include <string>
#include <string_view>

namespace weft {
namespace {

std::span<const std::byte> bytes_of(std::string_view text) {
  return std::as_bytes(std::span(text));
}

class AuthorizationsTest : public testing::Test {
 protected:
  AuthorizationPtr take(std::string_view key) { return keys_.take(bytes_of(key)).value(); }
  int error_of(std::string_view key) {
    const auto taken = keys_.take(bytes_of(key));
    return taken ? 0 : taken.error().code;
  }

  Authorizations keys_;
};

TEST_F(AuthorizationsTest, EqualKeysAreOne) {
  const AuthorizationPtr key = take("job");
  EXPECT_EQ(key, take("job"));
  EXPECT_NE(key->number(), 0U);
  EXPECT_NE(key->number(), take("jobs")->number());
  EXPECT_NE(key->number(), take(std::string("job\0", 4))->number());
}

TEST_F(AuthorizationsTest, AKeyHas1To64Bytes) {
  EXPECT_EQ(error_of(""), EINVAL);
  EXPECT_EQ(error_of("k"), 0);
  EXPECT_EQ(error_of(std::string(64, 'k')), 0);
  EXPECT_EQ(error_of(std::string(65, 'k')), EINVAL);
}

TEST_F(AuthorizationsTest, HashesDependOnAllOfKeyAndSalt) {
  const auto hash = [&](std::string_view key, std::string_view salt) {
    return take(key)->hash(bytes_of(salt));
  };
  EXPECT_EQ(hash("job", "salt"), hash("job", "salt"));
  std::set<AuthorizationHash> different{hash_of(nullptr, bytes_of("salt")),
                                        hash("job", "salt"),
                                        hash("job", "salt2"),
                                        hash("job2", "salt"),
                                        hash(std::string("job\0", 4), "salt"),
                                        hash(std::string(63, 'k') + "1", "salt"),
                                        hash(std::string(63, 'k') + "2", "salt")};
  EXPECT_EQ(different.size(), 7U);
}

TEST(AuthorizationHashes, AreTheSameWhereNoBitDiffers) {
  const AuthorizationHash one{std::byte{1}};
  EXPECT_TRUE(is_same(one, one));
  for (std::size_t bit = 0; bit < 8 * one.size(); ++bit) {
    AuthorizationHash other = one;
    other[bit / 8] ^= std::byte{1} << bit % 8;
    EXPECT_FALSE(is_same(one, other)) << bit;
  }
}

TEST_F(AuthorizationsTest, QueueKeysAreStableAndNotPrivileged) {
  Authorizations other;
  for (int i = 0; i < 64; ++i) {
    const std::string key = "job" + std::to_string(i);
    const std::uint32_t queue_key = take(key)->queue_key();
    EXPECT_EQ(queue_key, other.take(bytes_of(key)).value()->queue_key());
    EXPECT_EQ(queue_key >> 31, 0U);
  }
  EXPECT_NE(take("a")->queue_key(), take("b")->queue_key());
}

TEST_F(AuthorizationsTest, NumbersAreGivenAgainAsLateAsPossible) {
  std::set<std::uint32_t> seen;
  for (std::uint32_t i = 0; i < kMaxAuthorizations; ++i)
    EXPECT_TRUE(seen.insert(take(std::to_string(i))->number()).second);
  EXPECT_FALSE(seen.insert(take("again")->number()).second);
}

TEST_F(AuthorizationsTest, ThereIsRoomForAKeyAgainWhenOneIsUnused) {
  std::vector<AuthorizationPtr> all;
  for (std::uint32_t i = 0; i < kMaxAuthorizations; ++i) all.push_back(take(std::to_string(i)));
  EXPECT_EQ(error_of("one more"), ENOSPC);
  EXPECT_EQ(error_of("0"), 0);
  all.pop_back();
  EXPECT_EQ(error_of("one more"), 0);
}

TEST(AuthorizationTest, NothingOfAKeyIsLeftInMemory) {
  alignas(Authorization) std::array<std::byte, sizeof(Authorization)> memory{};
  const std::string key = "a key that must go";
  auto* const object = new (memory.data()) Authorization(bytes_of(key), 1);
  const auto holds_key = [&] {
    const std::string_view all(reinterpret_cast<const char*>(memory.data()), memory.size());
    return all.find(key) != std::string_view::npos;
  };
  EXPECT_TRUE(holds_key());
  object->~Authorization();
  EXPECT_FALSE(holds_key());
}

}  // namespace
}  // namespace weft
