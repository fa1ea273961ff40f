// SPDX-License-Identifier: BSD-2-Clause
// Do access flags of experimental verbs become those of ibv_reg_mr(3), and modes of files?
#include "exp_access.h"

#include <gtest/gtest.h>

#include <cerrno>

namespace weft::verbs {
namespace {

TEST(ExperimentalAccess, GrantsAreModeBits) {
  EXPECT_EQ(mode_of_grants(IBV_EXP_ACCESS_SHARED_MR_USER_READ), 0400U);
  EXPECT_EQ(mode_of_grants(IBV_EXP_ACCESS_SHARED_MR_USER_WRITE), 0200U);
  EXPECT_EQ(mode_of_grants(IBV_EXP_ACCESS_SHARED_MR_GROUP_READ), 0040U);
  EXPECT_EQ(mode_of_grants(IBV_EXP_ACCESS_SHARED_MR_GROUP_WRITE), 0020U);
  EXPECT_EQ(mode_of_grants(IBV_EXP_ACCESS_SHARED_MR_OTHER_READ), 0004U);
  EXPECT_EQ(mode_of_grants(IBV_EXP_ACCESS_SHARED_MR_OTHER_WRITE), 0002U);
  EXPECT_EQ(mode_of_grants(kGrants), 0666U);
  EXPECT_EQ(mode_of_grants(~kGrants), 0U);
}

TEST(ExperimentalAccess, RightsAreThoseOfThePlainVerb) {
  EXPECT_EQ(plain_access(0x1F), 0x1FU);
  EXPECT_EQ(plain_access(IBV_EXP_ACCESS_ON_DEMAND), IBV_ACCESS_ON_DEMAND);
  EXPECT_EQ(plain_access(~std::uint64_t{0}), 0x1FU | IBV_ACCESS_ON_DEMAND);
  EXPECT_EQ(plain_access(IBV_EXP_ACCESS_RELAXED | IBV_EXP_ACCESS_MW_ZERO_BASED | kGrants), 0U);
}

// Bits 5 to 7 are flags of ibv_reg_mr(3) that OFED did not have.
TEST(ExperimentalAccess, KnowsNoOtherBits) {
  for (unsigned bit = 0; bit < 64; ++bit) {
    const bool known = bit < 5 || (bit >= 37 && bit < 50);
    const int error = check_exp_access((std::uint64_t{1} << bit) | IBV_EXP_ACCESS_LOCAL_WRITE);
    const bool offered = bit != 48 && bit != 49;
    EXPECT_EQ(error, !known ? EINVAL : offered ? 0 : EOPNOTSUPP) << bit;
  }
}

}  // namespace
}  // namespace weft::verbs
