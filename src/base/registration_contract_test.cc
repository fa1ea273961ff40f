// SPDX-License-Identifier: BSD-2-Clause
// Does a contract demand what its name says?
#include "base/registration_contract.h"

#include <gtest/gtest.h>

namespace weft {
namespace {

constexpr std::uint32_t kMap = kDemandVirtualAddresses | kDemandAllocated | kDemandProviderKeys;

RegistrationContract contract(std::string_view text) {
  const auto parsed = RegistrationContract::parse(text);
  EXPECT_TRUE(parsed.ok()) << text << ": " << parsed.error().message;
  return parsed.ok() ? parsed.value() : RegistrationContract();
}

std::string refusal(std::string_view text) {
  const auto parsed = RegistrationContract::parse(text);
  EXPECT_FALSE(parsed.ok()) << text;
  return parsed.ok() ? "" : parsed.error().message;
}

TEST(RegistrationContract, DemandsNothingByDefault) {
  const RegistrationContract usual = contract("default");
  EXPECT_EQ(usual.demands, 0u);
  EXPECT_EQ(usual.key_size + usual.segments + usual.regions + usual.inject_size, 0u);
  EXPECT_EQ(RegistrationContract().name, usual.name);
}

TEST(RegistrationContract, OfAProviderHasItsBitsAndLimits) {
  const RegistrationContract verbs = contract("verbs");
  EXPECT_EQ(verbs.demands, kMap | kDemandLocal);
  EXPECT_EQ(verbs.key_size, 4u);
  EXPECT_EQ(verbs.segments, 1u);
  EXPECT_EQ(verbs.inject_size, 256u);
  EXPECT_EQ(verbs.data, ProgressModel::kAutomatic);
  EXPECT_EQ(contract("efa").demands, kMap | kDemandLocal);
  const RegistrationContract cxi = contract("cxi");
  EXPECT_EQ(cxi.demands, kDemandAllocated | kDemandProviderKeys | kDemandEndpoint);
  EXPECT_EQ(cxi.regions, 100u);
  EXPECT_EQ(cxi.message_size, 0xffff'ffffu);
  EXPECT_EQ(cxi.control, ProgressModel::kManual);
  EXPECT_EQ(contract("ucx").demands, kMap | kDemandRaw);
  EXPECT_EQ(contract("ucx").key_size, 64u);
  EXPECT_EQ(contract("ucx").regions, 65536u);
}

TEST(RegistrationContract, MayBeAListOfBits) {
  EXPECT_EQ(contract("local").demands, kDemandLocal);
  EXPECT_EQ(contract("virt_addr,allocated,prov_key").demands, kMap);
  EXPECT_EQ(contract("local,local").demands, kDemandLocal);
  EXPECT_EQ(contract("local").key_size, 0u);
  EXPECT_EQ(contract("allocated,local").name, "allocated,local");
  EXPECT_EQ(contract("raw,mmu_notify,rma_event,endpoint").demands,
            kDemandRaw | kDemandMmuNotify | kDemandRmaEvent | kDemandEndpoint);
}

TEST(RegistrationContract, RefusesWordsThatItDoesNotKnow) {
  EXPECT_NE(refusal("verb").find("'verb'"), std::string::npos);
  EXPECT_NE(refusal("local,lokal").find("'lokal'"), std::string::npos);
  for (const char* text : {"", ",", "local,", " local", "LOCAL", "verbs,local", "collective"}) {
    EXPECT_FALSE(refusal(text).empty()) << text;
  }
}

}  // namespace
}  // namespace weft
