// SPDX-License-Identifier: BSD-2-Clause
// Are FI_WEFT_* variables taken when they make sense, and ignored when they do not?
#include "params.h"

#include <gtest/gtest.h>

#include <cstdlib>

#include "terms.h"

namespace weft::fabric {
namespace {

// A provider of another name, so that nothing that the user set plays a part.
fi_provider& test_provider() {
  static fi_provider provider = [] {
    fi_param* all = nullptr;
    int count = 0;
    if (fi_getparams(&all, &count) == 0) fi_freeparams(all);  // starts libfabric
    fi_provider made{};
    made.name = "weftparams";
    return made;
  }();
  static const bool defined = (define_parameters(provider), true);
  EXPECT_TRUE(defined);
  return provider;
}

class Variable {
 public:
  Variable(const char* name, const char* value) : name_(std::string("FI_WEFTPARAMS_") + name) {
    ::setenv(name_.c_str(), value, 1);
  }
  ~Variable() { ::unsetenv(name_.c_str()); }

 private:
  std::string name_;
};

std::chrono::milliseconds timeout_with(const char* value) {
  const Variable variable("CONNECT_TIMEOUT_MS", value);
  return read_parameters(test_provider()).connect_timeout;
}

TEST(Parameters, UnsetVariablesLeaveTheDefaults) {
  const Options options = read_parameters(test_provider());
  EXPECT_EQ(options.connect_timeout, Options().connect_timeout);
  EXPECT_EQ(options.eager_limit, Options().eager_limit);
  EXPECT_EQ(options.unexpected_limit, Options().unexpected_limit);
  EXPECT_TRUE(options.runtime_dir.empty());
  EXPECT_TRUE(options.interface.empty());
  EXPECT_TRUE(options.disable_layering);
  EXPECT_TRUE(options.foreign_peers);
}

TEST(Parameters, ANumberIsTaken) {
  EXPECT_EQ(timeout_with("1500"), std::chrono::milliseconds(1500));
}

TEST(Parameters, ANumberThatIsNoneOrOutOfRangeIsIgnored) {
  const auto usual = Options().connect_timeout;
  for (const char* value :
       {"", "soon", "5 s", "5s", "-1", "0", "3600001", "99999999999999999999"}) {
    EXPECT_EQ(timeout_with(value), usual) << "'" << value << "'";
  }
}

TEST(Parameters, PatienceWithPeersIsASecondAtLeast) {
  const auto patience_with = [](const char* value) {
    const Variable variable("PEER_TIMEOUT_MS", value);
    return read_parameters(test_provider()).peer_timeout;
  };
  EXPECT_EQ(patience_with("1000"), std::chrono::seconds(1));
  EXPECT_EQ(patience_with("3600000"), std::chrono::hours(1));
  for (const char* value : {"", "0", "999", "3600001", "1e4", "10 s", "for ever"}) {
    EXPECT_EQ(patience_with(value), Options().peer_timeout) << "'" << value << "'";
  }
}

TEST(Parameters, AnEagerLimitOfZeroMeansNothingIsEager) {
  const Variable variable("EAGER_LIMIT", "0");
  EXPECT_EQ(read_parameters(test_provider()).eager_limit, 0U);
}

TEST(Parameters, TextIsTakenAsItIs) {
  const Variable directory("RUNTIME_DIR", "/some/where");
  const Variable interopen_path("IFACE", "lo");
  const Options options = read_parameters(test_provider());
  EXPECT_EQ(options.runtime_dir, "/some/where");
  EXPECT_EQ(options.interface, "lo");
}

TEST(Parameters, LayeringMayBeAllowed) {
  const Variable variable("DISABLE_LAYERING", "no");
  EXPECT_FALSE(read_parameters(test_provider()).disable_layering);
}

TEST(Parameters, ForeignPeersMayBeKeptOut) {
  const Variable variable("FOREIGN_PEERS", "no");
  EXPECT_FALSE(read_parameters(test_provider()).foreign_peers);
}

TEST(Parameters, TheContractSaysWhatRegionsRequire) {
  const auto modes_with = [](const char* value) {
    const Variable variable("CONTRACT", value);
    return terms_of(read_parameters(test_provider())).mr_modes;
  };
  EXPECT_EQ(terms_of(read_parameters(test_provider())).mr_modes, 0);
  EXPECT_EQ(modes_with("default"), 0);
  EXPECT_EQ(modes_with("map"), FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY);
  EXPECT_EQ(modes_with("verbs"), FI_MR_LOCAL | FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY);
  EXPECT_EQ(modes_with("local,prov_key"), FI_MR_LOCAL | FI_MR_PROV_KEY);
  EXPECT_EQ(modes_with("verbs?"), 0);
}

TEST(Parameters, ATruthValueThatIsNoneIsIgnored) {
  const Variable variable("DISABLE_LAYERING", "perhaps");
  EXPECT_TRUE(read_parameters(test_provider()).disable_layering);
}

}  // namespace
}  // namespace weft::fabric
