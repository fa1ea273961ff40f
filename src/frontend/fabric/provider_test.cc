// SPDX-License-Identifier: BSD-2-Clause
// Does the provider that libfabric gets keep the rules of loading? fi_provider(3)
#include "provider.h"

#include <gtest/gtest.h>
#include <rdma/fi_errno.h>

#include <cstddef>
#include <cstring>

#include "log.h"
#include "offer.h"

namespace weft::fabric {
namespace {

class Loaded : public testing::Test {
 protected:
  Loaded() {
    fi_param* all = nullptr;
    int count = 0;
    if (fi_getparams(&all, &count) == 0) fi_freeparams(all);  // starts libfabric
    provider_ = fi_prov_ini();
  }
  ~Loaded() override { provider_->cleanup(); }

  fi_provider* provider_ = nullptr;
};

TEST_F(Loaded, IsNamedInLowerCaseAndHasEveryFunction) {
  ASSERT_NE(provider_, nullptr);
  EXPECT_STREQ(provider_->name, "weft");
  EXPECT_EQ(provider_->version, kProviderVersion);
  EXPECT_TRUE(provider_->getinfo && provider_->fabric && provider_->cleanup);
}

TEST_F(Loaded, ClaimsTheVersionOfTheLibraryThatRuns) {
  EXPECT_EQ(provider_->fi_version, fi_version());
}

TEST_F(Loaded, PresetsNothingButTheLayeringByte) {
  unsigned char state[sizeof provider_->context];
  std::memcpy(state, &provider_->context, sizeof state);
  for (std::size_t at = 0; at < sizeof state; ++at) EXPECT_EQ(state[at], at == 5 ? 1 : 0) << at;
}

TEST_F(Loaded, CanBeCleanedUpUnusedTwiceAndLoadedAgain) {
  provider_->cleanup();
  provider_->cleanup();
  EXPECT_FALSE(log_enabled(FI_LOG_WARN, FI_LOG_CORE));
  EXPECT_EQ(fi_prov_ini(), provider_);
}

TEST_F(Loaded, GetinfoRefusesNullAndClearsItsResultOnError) {
  EXPECT_EQ(provider_->getinfo(fi_version(), nullptr, nullptr, 0, nullptr, nullptr), -FI_EINVAL);
  fi_info* info = reinterpret_cast<fi_info*>(this);
  EXPECT_EQ(provider_->getinfo(fi_version(), nullptr, nullptr, FI_SOURCE, nullptr, &info),
            -FI_EINVAL);
  EXPECT_EQ(info, nullptr);
}

TEST_F(Loaded, GetinfoGivesAListThatLibfabricFrees) {
  fi_info* info = nullptr;
  ASSERT_EQ(provider_->getinfo(fi_version(), nullptr, nullptr, 0, nullptr, &info), 0);
  ASSERT_NE(info, nullptr);
  fi_freeinfo(info);
}

TEST_F(Loaded, OpensOnlyFabricsThatExist) {
  fid_fabric* fabric = nullptr;
  fi_fabric_attr attributes{};
  EXPECT_EQ(provider_->fabric(nullptr, &fabric, nullptr), -FI_EINVAL);
  EXPECT_EQ(provider_->fabric(&attributes, nullptr, nullptr), -FI_EINVAL);
  EXPECT_EQ(provider_->fabric(&attributes, &fabric, nullptr), -FI_ENODATA);
  char unknown[] = "203.0.113.0/24";
  attributes.name = unknown;
  EXPECT_EQ(provider_->fabric(&attributes, &fabric, nullptr), -FI_ENODATA);
  char loopback[] = "127.0.0.0/8";
  attributes.name = loopback;
  ASSERT_EQ(provider_->fabric(&attributes, &fabric, nullptr), 0);
  EXPECT_EQ(fi_close(&fabric->fid), 0);
}

}  // namespace
}  // namespace weft::fabric
