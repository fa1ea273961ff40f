// SPDX-License-Identifier: BSD-2-Clause
// Which fi_info a measurement runs on: the hints given to fi_getinfo(3) and the choice among its
// answers.
#pragma once

#include <set>
#include <string>

#include "fabric_object.h"
#include "options.h"

namespace weft::bench {

// The first reliable datagram endpoint of options.provider that can do options.operation. It may
// ask for FI_MR_LOCAL, VIRT_ADDR, ALLOCATED, PROV_KEY and ENDPOINT (the program keeps all of
// them), for no mode bit. Ends the process when there is none.
Info select_info(const Options& options);

// The names of all providers that select_info() could answer with.
std::set<std::string> usable_providers();

}  // namespace weft::bench
