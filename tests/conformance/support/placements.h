// SPDX-License-Identifier: BSD-2-Clause
// Over which placements of the two sides does a rule run?
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "world.h"

namespace weft::conformance {

using PlacementTest = testing::TestWithParam<Placement>;

inline auto both_process_counts() {
  return testing::Values(Placement::kTwoProcesses, Placement::kOneProcess,
                         Placement::kConnectedProcesses, Placement::kConnected);
}
inline auto every_placement() {
  return testing::Values(Placement::kTwoProcesses, Placement::kOneProcess, Placement::kTwoDomains,
                         Placement::kSelf, Placement::kConnectedProcesses, Placement::kConnected);
}
inline std::string placement_name(const testing::TestParamInfo<Placement>& one) {
  return to_string(one.param);
}

}  // namespace weft::conformance
