// SPDX-License-Identifier: BSD-2-Clause
// Has each network interface a number of its own, which stays the same?
#include "os/interface_identity.h"
#include "os/interfaces.h"

#include <gtest/gtest.h>

#include <set>

namespace weft::os {
namespace {

TEST(InterfaceIdentity, IsAnotherOneForEachInterfaceAndNeverZero) {
  std::set<std::uint64_t> numbers;
  const auto interfaces = usable_interfaces();
  ASSERT_TRUE(interfaces.ok());
  for (const Interface& each : interfaces.value()) {
    EXPECT_NE(interface_identity(each.name), 0U) << each.name;
    EXPECT_EQ(interface_identity(each.name), interface_identity(each.name)) << each.name;
    EXPECT_TRUE(numbers.insert(interface_identity(each.name)).second) << each.name;
  }
}

TEST(InterfaceIdentity, OfTheLoopbackIsLocallyAdministered) {
  EXPECT_EQ(hardware_address("lo"), HardwareAddress{});
  EXPECT_NE(interface_identity("lo") >> 56 & 2, 0U);
}

TEST(InterfaceIdentity, OfAnInterfaceThatIsNotThereIsANumberToo) {
  EXPECT_EQ(hardware_address("absent"), HardwareAddress{});
  EXPECT_NE(interface_identity("absent"), interface_identity("lo"));
}

}  // namespace
}  // namespace weft::os
