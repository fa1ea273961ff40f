// SPDX-License-Identifier: BSD-2-Clause
// Does each variable take what makes sense, and refuse everything else?
#include "base/options.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
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
  EXPECT_EQ(names.size(), 12U);
}

TEST(OptionVariables, StoreTheirOptionAndNoOther) {
  Options options;
  EXPECT_TRUE(variable("connect_timeout_ms").parse(options, "17").ok());
  EXPECT_TRUE(variable("unexpected_limit").parse(options, "0").ok());
  EXPECT_TRUE(variable("links").parse(options, "udp").ok());
  EXPECT_TRUE(variable("contract").parse(options, "map").ok());
  EXPECT_TRUE(variable("foreign_peers").parse(options, "no").ok());
  EXPECT_TRUE(variable("selective").parse(options, "no").ok());
  EXPECT_TRUE(variable("iface").parse(options, "lo").ok());
  EXPECT_EQ(options.connect_timeout, milliseconds(17));
  EXPECT_EQ(options.unexpected_limit, 0U);
  EXPECT_FALSE(options.links.shm);
  EXPECT_TRUE(options.links.udp);
  EXPECT_EQ(options.contract.name, "map");
  EXPECT_FALSE(options.foreign_peers);
  EXPECT_FALSE(options.selective);
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
      {"contract", {"", "verbs?", "local,", "local,verbs", "collective"}},
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

// Variables of a prefix that no user sets.
class Environment : public testing::Test {
 protected:
  ~Environment() override {
    for (const std::string& name : set_) ::unsetenv(name.c_str());
  }
  void set(const std::string& name, const char* value) {
    ::setenv(name.c_str(), value, 1);
    set_.push_back(name);
  }
  Options read() {
    const std::string_view prefixes[] = {"WEFTTEST1_", "WEFTTEST2_"};
    return Options::from_environment(prefixes,
                                     [&](const std::string& line) { warnings_.push_back(line); });
  }

  std::vector<std::string> warnings_;

 private:
  std::vector<std::string> set_;
};

TEST_F(Environment, WithoutVariablesHasTheDefaults) {
  const Options options = read();
  EXPECT_EQ(options.peer_timeout, Options::defaults().peer_timeout);
  EXPECT_TRUE(options.interface.empty() && options.foreign_peers && warnings_.empty());
}

TEST_F(Environment, TheFirstPrefixWithAValueCounts) {
  set("WEFTTEST1_IFACE", "lo");
  set("WEFTTEST2_IFACE", "eth0");
  set("WEFTTEST2_CONNECT_TIMEOUT_MS", "17");
  const Options options = read();
  EXPECT_EQ(options.interface, "lo");
  EXPECT_EQ(options.connect_timeout, milliseconds(17));
  EXPECT_TRUE(warnings_.empty());
}

TEST_F(Environment, TruthValuesHaveTheSpellingsOfLibfabric) {
  for (const char* no : {"0", "no", "No", "FALSE", "off"}) {
    set("WEFTTEST1_FOREIGN_PEERS", no);
    EXPECT_FALSE(read().foreign_peers) << no;
  }
  for (const char* yes : {"1", "yes", "True", "ON"}) {
    set("WEFTTEST1_FOREIGN_PEERS", yes);
    EXPECT_TRUE(read().foreign_peers) << yes;
  }
  EXPECT_TRUE(warnings_.empty());
}

TEST_F(Environment, NonsenseIsReportedAndTheDefaultIsUsed) {
  set("WEFTTEST1_PEER_TIMEOUT_MS", "5 s");
  set("WEFTTEST1_FOREIGN_PEERS", "perhaps");
  const Options options = read();
  EXPECT_EQ(options.peer_timeout, Options::defaults().peer_timeout);
  EXPECT_TRUE(options.foreign_peers);
  EXPECT_EQ(warnings_, (std::vector<std::string>{
                           "WEFTTEST1_PEER_TIMEOUT_MS=5 s: not a whole number from 1000 to "
                           "3600000; the default is used",
                           "WEFTTEST1_FOREIGN_PEERS=perhaps: neither yes nor no; the default is "
                           "used"}));
}

}  // namespace
}  // namespace weft
