// SPDX-License-Identifier: BSD-2-Clause
// How does one process outlive a thousand peers?
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "fork_server.h"
#include "node.h"

namespace weft::faults {

struct KillPlan {
  fi_ep_type type = FI_EP_RDM;
  std::uint64_t kills = 0;
  std::uint64_t seed = 0;
  std::string runtime_directory;
};

// Meets victims, up to as many at once as there are `slots`, until `plan.kills` of them were
// killed, while it exchanges data with the witness; then closes everything. Returns kPassed; a
// broken rule ends the process.
int live_as_survivor(const KillPlan& plan, Channel fork_server, std::vector<Channel> slots,
                     Channel witness);

}  // namespace weft::faults
