// SPDX-License-Identifier: BSD-2-Clause
// Does each variable take what makes sense, and refuse everything else?
#include "base/options.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

namespace weft {
namespace {

using std::chrono::milliseconds;

const OptionVariable& variable(std::string_view name) {
  const auto all = option_variables();
  const auto found = std::ranges::find_if(all, [&](const auto& each) { return each.name == name; });
  EXPECT_NE(found, all.end()) << name;
  return *found;
}

TEST(OptionVariables, HaveNamesOfTheirOwnAndExplanations) {
  std::set<std::string> names;
  for (const OptionVariable& each : option_variables()) {
    EXPECT_TRUE(names.insert(each.name).second) << each.name;
    EXPECT_NE(each.help.find("default: "), std::string::npos) << each.name;
  }
  EXPECT_EQ(names.size(), 11U);
}

TEST(OptionVariables, StoreTheirOptionAndNoOther) {
  Options options;
  EXPECT_TRUE(variable("connect_timeout_ms").parse(options, "17").ok());
  EXPECT_TRUE(variable("unexpected_limit").parse(options, "0").ok());
  EXPECT_TRUE(variable("links").parse(options, "udp").ok());
  EXPECT_TRUE(variable("contract").parse(options, "map").ok());
  EXPECT_TRUE(variable("foreign_peers").parse(options, "no").ok());
  EXPECT_TRUE(variable("iface").parse(options, "lo").ok());
  EXPECT_EQ(options.connect_timeout, milliseconds(17));
  EXPECT_EQ(options.unexpected_limit, 0U);
  EXPECT_FALSE(options.links.shm);
  EXPECT_TRUE(options.links.udp);
  EXPECT_EQ(options.contract, RegistrationContract::kMap);
  EXPECT_FALSE(options.foreign_peers);
  EXPECT_EQ(options.interface, "lo");
  EXPECT_EQ(options.peer_timeout, Options::defaults().peer_timeout);
  EXPECT_EQ(options.eager_limit, Options::defaults().eager_limit);
  EXPECT_TRUE(options.disable_layering);
}

TEST(OptionVariables, RefuseTextThatIsNoneOfTheirValues) {
  const std::pair<const char*, std::vector<std::string_view>> bad[] = {
      {"connect_timeout_ms",
       {"", "0", "-1", "+1", "5 s", "1e3", "3600001", "18446744073709551617"}},
      {"peer_timeout_ms", {"999", "3600001"}},
      {"eager_limit", {"1073741825", "0x10"}},
      {"links", {"", "tcp", "SHM"}},
      {"contract", {"", "verbs"}},
      {"foreign_peers", {"", "1", "perhaps"}},
  };
  for (const auto& [name, texts] : bad) {
    for (const std::string_view text : texts) {
      Options options;
      const Status status = variable(name).parse(options, text);
      EXPECT_FALSE(status.ok()) << name << "=" << text;
      EXPECT_EQ(status.error().code, EINVAL);
      EXPECT_EQ(options.connect_timeout, Options::defaults().connect_timeout);
      EXPECT_TRUE(options.links.shm && options.links.udp);
    }
  }
}

TEST(OptionVariables, ARefusalOfANumberNamesItsRange) {
  Options options;
  EXPECT_EQ(variable("peer_timeout_ms").parse(options, "999").error().message,
            "not a whole number from 1000 to 3600000");
}

}  // namespace
}  // namespace weft
