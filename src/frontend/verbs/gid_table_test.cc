// SPDX-License-Identifier: BSD-2-Clause
// Has every index that users are used to a GID?
#include "verbs/gid_table.h"
#include "os/loopback_support.h"

#include <gtest/gtest.h>

#include "verbs/limits.h"

namespace weft::verbs {
namespace {

using os::address_of;

constexpr GidBytes kMapped = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xFF, 0xFF, 192, 0, 2, 7};

os::Interface interface_with(std::vector<const char*> hosts) {
  os::Interface interface;
  for (const char* host : hosts) interface.addresses.push_back({address_of(host), 24});
  return interface;
}

TEST(GidOf, IsTheMappedAddressOfIpv4AndTheAddressOfIpv6) {
  EXPECT_EQ(gid_of(address_of("192.0.2.7")), kMapped);
  EXPECT_EQ(gid_of(address_of("::1")), (GidBytes{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1}));
}

TEST(GidTable, RepeatsTheFirstGidWhereAddressesAreFew) {
  const GidTable table(interface_with({"192.0.2.7", "2001:db8::7"}));
  ASSERT_EQ(table.size(), std::size_t{Limits::kGidsAtLeast});
  EXPECT_EQ(table.distinct(), 2U);
  EXPECT_EQ(table.find(0)->gid, kMapped);
  EXPECT_EQ(table.find(1)->address, address_of("2001:db8::7"));
  EXPECT_EQ(table.find(2)->gid, kMapped);
  EXPECT_EQ(table.find(3)->gid, kMapped);
  EXPECT_EQ(table.find(3)->address, address_of("192.0.2.7"));
}

TEST(GidTable, HasOneRowForEachOfManyAddresses) {
  const GidTable table(
      interface_with({"192.0.2.1", "192.0.2.2", "192.0.2.3", "192.0.2.4", "192.0.2.5"}));
  EXPECT_EQ(table.size(), 5U);
  EXPECT_EQ(table.distinct(), 5U);
}

TEST(GidTable, EndsBehindItsLastRow) {
  const GidTable table(interface_with({"192.0.2.7"}));
  for (const std::uint64_t beyond : {std::uint64_t{4}, ~std::uint64_t{0}}) {
    EXPECT_EQ(table.find(beyond), nullptr);
  }
}

TEST(GidTable, FindsTheFirstRowOfAGid) {
  const GidTable table(interface_with({"192.0.2.7", "2001:db8::7"}));
  EXPECT_EQ(table.index_of(kMapped), 0);
  EXPECT_EQ(table.index_of(gid_of(address_of("2001:db8::7"))), 1);
  EXPECT_EQ(table.index_of(GidBytes{}), -1);
}

}  // namespace
}  // namespace weft::verbs
