// SPDX-License-Identifier: BSD-2-Clause
// Do names become the addresses they stand for, and are bad ones refused?
#include "os/name_lookup.h"

#include <gtest/gtest.h>

namespace weft::os {
namespace {

int error_of(const NameQuery& query) {
  const auto found = look_up(query);
  return found.ok() ? 0 : found.error().code;
}

TEST(LookUp, ANumericAddressAndPortAreTakenAsTheyAre) {
  const auto found = look_up({.node = "192.0.2.9", .service = "4791", .numeric = true});
  ASSERT_TRUE(found.ok()) << found.error().message;
  ASSERT_EQ(found.value().size(), 1U);
  EXPECT_EQ(found.value()[0].text(), "192.0.2.9:4791");
}

TEST(LookUp, ANodeAloneHasPortZero) {
  const auto found = look_up({.node = "2001:db8::9", .numeric = true});
  ASSERT_TRUE(found.ok()) << found.error().message;
  EXPECT_EQ(found.value()[0].text(), "[2001:db8::9]:0");
}

TEST(LookUp, APassiveServiceIsEveryLocalAddress) {
  const auto found = look_up({.service = "5000", .passive = true, .family = AF_INET});
  ASSERT_TRUE(found.ok()) << found.error().message;
  EXPECT_TRUE(found.value()[0].is_any());
  EXPECT_EQ(found.value()[0].port(), 5000);
}

TEST(LookUp, AServiceAloneIsTheLoopback) {
  const auto found = look_up({.service = "5000", .family = AF_INET});
  ASSERT_TRUE(found.ok()) << found.error().message;
  EXPECT_EQ(found.value()[0].text(), "127.0.0.1:5000");
}

TEST(LookUp, Ipv4ComesBeforeIpv6AndNothingTwice) {
  const auto found = look_up({.service = "5000", .passive = true});
  ASSERT_TRUE(found.ok()) << found.error().message;
  for (std::size_t i = 1; i < found.value().size(); ++i) {
    EXPECT_LE(found.value()[i - 1].family(), found.value()[i].family());
    EXPECT_FALSE(found.value()[i - 1] == found.value()[i]);
  }
}

TEST(LookUp, RefusesNoNameAtAll) { EXPECT_EQ(error_of({}), EINVAL); }

TEST(LookUp, RefusesAPortAboveTheLargest) {
  EXPECT_EQ(error_of({.node = "127.0.0.1", .service = "65536"}), EINVAL);
  EXPECT_EQ(error_of({.node = "127.0.0.1", .service = "99999999999999999999999"}), EINVAL);
  EXPECT_EQ(error_of({.node = "127.0.0.1", .service = "65535"}), 0);
}

TEST(LookUp, ANameIsNoNumericAddress) {
  EXPECT_EQ(error_of({.node = "localhost", .numeric = true}), ENODATA);
}

TEST(LookUp, AnAddressOfTheOtherFamilyIsNotFound) {
  EXPECT_EQ(error_of({.node = "127.0.0.1", .numeric = true, .family = AF_INET6}), ENODATA);
}

}  // namespace
}  // namespace weft::os
