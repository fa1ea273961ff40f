// SPDX-License-Identifier: BSD-2-Clause
// Does the offer stay within the contract that the user chose?
#include "terms.h"

#include <gtest/gtest.h>

namespace weft::fabric {
namespace {

Terms terms_under(std::string_view contract) {
  Options options;
  options.contract = RegistrationContract::parse(contract).value();
  return terms_of(options);
}

TEST(Terms, HaveWeftsOwnLimitsWithoutAContract) {
  const Terms terms = terms_under("default");
  EXPECT_TRUE(terms.contract.empty());
  EXPECT_EQ(terms.mr_cnt, kMrCount);
  EXPECT_EQ(offer_under(kReliableDatagrams, terms).max_inject_size, kInjectSize);
  EXPECT_EQ(offer_under(kReliableDatagrams, terms).max_message_size, kMaxMessageSize);
}

TEST(Terms, HaveTheLimitsOfTheContract) {
  const Terms terms = terms_under("cxi");
  EXPECT_EQ(terms.contract, "cxi");
  EXPECT_EQ(terms.mr_cnt, 100u);
  EXPECT_EQ(terms.mr_iov_limit, 1u);
  EXPECT_EQ(terms.data_progress, FI_PROGRESS_MANUAL);
  EXPECT_EQ(offer_under(kConnected, terms).max_inject_size, 192u);
  EXPECT_EQ(offer_under(kConnected, terms).max_message_size, 0xffff'ffffu);
  EXPECT_EQ(offer_under(kDatagrams, terms).max_message_size, kMaxDatagramSize);
}

TEST(Terms, OfMessagesDemandWhatIsAboutLocalBuffers) {
  constexpr std::uint64_t kMessages = FI_MSG | FI_TAGGED;
  EXPECT_EQ(mr_modes_for(terms_under("verbs"), kMessages), FI_MR_LOCAL | FI_MR_ALLOCATED);
  EXPECT_EQ(mr_modes_for(terms_under("map"), kMessages), 0);
  EXPECT_EQ(mr_modes_for(terms_under("map"), kMessages | FI_ATOMIC), kMapMrModes);
}

}  // namespace
}  // namespace weft::fabric
