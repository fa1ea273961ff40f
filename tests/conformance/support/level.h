// SPDX-License-Identifier: BSD-2-Clause
// At which completion levels does a rule run? (fi_cq(3))
#pragma once

#include <rdma/fabric.h>

#include <cstdint>
#include <ostream>
#include <string>
#include <tuple>

#include "placements.h"

namespace weft::conformance {

struct Level {
  const char* name;
  std::uint64_t flag;
};
inline constexpr Level kLevels[] = {{"Default", 0},
                                    {"Inject", FI_INJECT_COMPLETE},
                                    {"Transmit", FI_TRANSMIT_COMPLETE},
                                    {"Delivery", FI_DELIVERY_COMPLETE}};
inline std::ostream& operator<<(std::ostream& out, Kind kind) { return out << traits(kind).name; }
inline std::ostream& operator<<(std::ostream& out, const Level& level) { return out << level.name; }

// How successes are reported: at a completion level, or by a queue with selective completions,
// where each call asks for a completion or none does. Errors are reported in all cases.
struct Reporting {
  const char* name;
  std::uint64_t tx_flags;
  bool selective = false;

  void choose(Options& options) const {
    options.tx_flags = tx_flags;
    options.cq_flags = selective ? FI_SELECTIVE_COMPLETION : 0;
  }
};
inline constexpr Reporting kReports[] = {{"Default", 0},
                                         {"Inject", FI_INJECT_COMPLETE},
                                         {"Transmit", FI_TRANSMIT_COMPLETE},
                                         {"Delivery", FI_DELIVERY_COMPLETE},
                                         {"Selected", FI_COMPLETION, true},
                                         {"Silent", 0, true}};

// A call, a level and a placement: where the call takes flags the level goes there, else it is the
// endpoint's default.
using TransferCase = std::tuple<Kind, Level, Placement>;

inline std::string transfer_name(const testing::TestParamInfo<TransferCase>& one) {
  const auto& [kind, level, placement] = one.param;
  return std::string(traits(kind).name) + "_" + level.name + "_" + to_string(placement);
}

}  // namespace weft::conformance
