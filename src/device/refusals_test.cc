// SPDX-License-Identifier: BSD-2-Clause
// Is a refused operation counted under the rule that it broke?
#include "device/refusals.h"

#include <gtest/gtest.h>

#include <utility>

#include "memory/access_guard.h"

namespace weft::device {
namespace {

using memory::AccessError;

std::string_view counter_of(AccessError rule, int kind = 0) {
  return name_of(refusal_counter(static_cast<int>(rule) + kind));
}

TEST(RefusalCounter, IsThatOfTheBrokenRule) {
  constexpr std::pair<AccessError, std::string_view> kRules[] = {
      {AccessError::kUnknownKey, "refused_unknown_key"},
      {AccessError::kBeforeStart, "refused_before_region"},
      {AccessError::kPastEnd, "refused_past_region"},
      {AccessError::kWraps, "refused_wrapped_range"},
      {AccessError::kNoRight, "refused_region_right"},
      {AccessError::kTooMany, "refused_too_many_ranges"},
      {AccessError::kNotServed, "refused_endpoint_right"},
      {AccessError::kSplitElement, "refused_split_element"},
      {AccessError::kDisabled, "refused_disabled_region"},
      {AccessError::kOtherBinding, "refused_other_endpoint"},
      {AccessError::kNotRefreshed, "refused_not_refreshed"},
      {AccessError::kOtherAuthorization, "refused_authorization"},
      {AccessError::kNotMapped, "refused_unmapped_key"},
  };
  for (const auto& [rule, name] : kRules) EXPECT_EQ(counter_of(rule), name);
}

TEST(RefusalCounter, IsOneForAllRulesOfLocalBuffers) {
  for (const AccessError rule : {AccessError::kUnknownKey, AccessError::kNoRight}) {
    EXPECT_EQ(counter_of(rule, memory::kLocalRefusal), "refused_local_buffer");
  }
}

}  // namespace
}  // namespace weft::device
