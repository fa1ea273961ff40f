// SPDX-License-Identifier: BSD-2-Clause
// Do devices have the names that they should have?
#include "device/offered_devices.h"

#include <gtest/gtest.h>

namespace weft::device {
namespace {

std::vector<std::string> names(std::string_view only) {
  const std::vector<os::Interface> interfaces = {
      {"net0", 2, false, {}}, {"net1", 3, false, {}}, {"lo", 1, true, {}}};
  std::vector<std::string> names;
  for (const OfferedDevice& each : devices_on(interfaces, only)) {
    EXPECT_EQ(each.name, "weft" + std::to_string(each.number));
    names.push_back(each.name + " on " + each.interface.name);
  }
  return names;
}

using Names = std::vector<std::string>;

TEST(OfferedDevices, AreNumberedInTheOrderOfTheInterfaces) {
  EXPECT_EQ(names(""), (Names{"weft0 on net0", "weft1 on net1", "weft2 on lo"}));
}

TEST(OfferedDevices, RestrictedToSomeInterfacesKeepTheirNumbersAndOrder) {
  EXPECT_EQ(names("lo"), Names{"weft2 on lo"});
  EXPECT_EQ(names("lo,net0"), (Names{"weft0 on net0", "weft2 on lo"}));
  EXPECT_EQ(names("net1,absent"), Names{"weft1 on net1"});
}

TEST(OfferedDevices, AreNoneWhereNoInterfaceHasTheName) {
  for (const char* only : {"absent", ",", "l", "lo0", " lo"}) EXPECT_EQ(names(only), Names{});
}

}  // namespace
}  // namespace weft::device
