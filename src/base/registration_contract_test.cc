// SPDX-License-Identifier: BSD-2-Clause
// Does a contract demand what its name says, and nothing that Weft does not enforce?
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
  EXPECT_EQ(cxi.demands & (kMap | kDemandLocal), kDemandAllocated | kDemandProviderKeys);
  EXPECT_EQ(cxi.regions, 100u);
  EXPECT_EQ(cxi.message_size, 0xffff'ffffu);
  EXPECT_EQ(cxi.control, ProgressModel::kManual);
  EXPECT_EQ(contract("ucx").demands & kMap, kMap);
  EXPECT_EQ(contract("ucx").regions, 65536u);
}

TEST(RegistrationContract, DemandsNoBitThatIsNotEnforced) {
  for (const char* name : {"default", "map", "verbs", "efa", "cxi", "ucx"}) {
    EXPECT_EQ(contract(name).demands & ~kEnforcedDemands, 0u) << name;
  }
  const bool raw = (kEnforcedDemands & kDemandRaw) != 0;
  EXPECT_EQ(contract("ucx").key_size, raw ? 64u : 8u) << "fi_mr_key(3) returns 8 bytes";
}

TEST(RegistrationContract, MayBeAListOfBits) {
  EXPECT_EQ(contract("local").demands, kDemandLocal);
  EXPECT_EQ(contract("virt_addr,allocated,prov_key").demands, kMap);
  EXPECT_EQ(contract("local,local").demands, kDemandLocal);
  EXPECT_EQ(contract("local").key_size, 0u);
  EXPECT_EQ(contract("allocated,local").name, "allocated,local");
}

TEST(RegistrationContract, RefusesWordsThatItDoesNotKnow) {
  EXPECT_NE(refusal("verb").find("'verb'"), std::string::npos);
  EXPECT_NE(refusal("local,lokal").find("'lokal'"), std::string::npos);
  for (const char* text : {"", ",", "local,", " local", "LOCAL", "verbs,local", "collective"}) {
    EXPECT_FALSE(refusal(text).empty()) << text;
  }
}

TEST(RegistrationContract, RefusesListsWithABitThatIsNotEnforced) {
  constexpr std::pair<const char*, std::uint32_t> kOthers[] = {{"raw", kDemandRaw},
                                                               {"mmu_notify", kDemandMmuNotify},
                                                               {"rma_event", kDemandRmaEvent},
                                                               {"endpoint", kDemandEndpoint}};
  for (const auto& [name, bit] : kOthers) {
    const bool enforced = (kEnforcedDemands & bit) != 0;
    EXPECT_EQ(RegistrationContract::parse(name).ok(), enforced) << name;
    const bool told = RegistrationContract::known_words().find(name) != std::string::npos;
    EXPECT_EQ(told, enforced) << name;
  }
}

}  // namespace
}  // namespace weft
