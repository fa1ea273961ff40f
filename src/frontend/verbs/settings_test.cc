// SPDX-License-Identifier: BSD-2-Clause
// Are variables taken when they make sense, and reported when they do not?
#include "settings.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <vector>

namespace weft::verbs {
namespace {

class SettingsTest : public testing::Test {
 protected:
  SettingsTest() { clear(); }
  ~SettingsTest() override { clear(); }
  void clear() {
    for (const char* name : {"WEFT_DEVICE_NAME", "WEFT_IFACE", "FI_WEFT_IFACE", "WEFT_LOG"}) {
      ::unsetenv(name);
    }
  }
  VerbsSettings read() {
    return read_settings([&](const std::string& line) { warnings_.push_back(line); });
  }
  std::vector<std::string> warnings_;
};

TEST_F(SettingsTest, DevicesHaveTheirOwnNamesByDefault) {
  EXPECT_EQ(read().device_names, "");
  EXPECT_TRUE(warnings_.empty());
}

TEST_F(SettingsTest, DevicesCanBeRenamed) {
  ::setenv("WEFT_DEVICE_NAME", "mlx5_%d", 1);
  EXPECT_EQ(device_name(read().device_names, 12), "mlx5_12");
  EXPECT_TRUE(warnings_.empty());
}

TEST_F(SettingsTest, ANameWithoutOnePlaceForTheNumberIsReported) {
  for (const char* bad : {"mlx5", "a%d%d", "%s%d", "a/%d", "a b%d", "100%",
                          "a-name-that-is-longer-than-the-structure-has-room-for-%d"}) {
    ::setenv("WEFT_DEVICE_NAME", bad, 1);
    warnings_.clear();
    EXPECT_EQ(read().device_names, "") << bad;
    EXPECT_EQ(warnings_.size(), 1U) << bad;
  }
}

TEST_F(SettingsTest, SentencesAboutRefusalsAreSwitchedOnAndOff) {
  EXPECT_FALSE(read().logs);
  for (const char* on : {"on", "1", "YES", "true"}) {
    ::setenv("WEFT_LOG", on, 1);
    EXPECT_TRUE(read().logs) << on;
  }
  ::setenv("WEFT_LOG", "off", 1);
  EXPECT_FALSE(read().logs);
  EXPECT_TRUE(warnings_.empty());
  ::setenv("WEFT_LOG", "loud", 1);
  EXPECT_FALSE(read().logs);
  EXPECT_EQ(warnings_.size(), 1U);
}

TEST_F(SettingsTest, TheVariableOfLibfabricComesFirst) {
  ::setenv("WEFT_IFACE", "lo", 1);
  EXPECT_EQ(read().options.interface, "lo");
  ::setenv("FI_WEFT_IFACE", "eth0,lo", 1);
  EXPECT_EQ(read().options.interface, "eth0,lo");
}

}  // namespace
}  // namespace weft::verbs
