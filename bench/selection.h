// SPDX-License-Identifier: BSD-2-Clause
// Which fi_info a measurement runs on: the hints given to fi_getinfo(3) and the choice among its
// answers.
#pragma once

#include <set>
#include <string>

#include "fabric_object.h"
#include "options.h"

namespace weft::bench {

// Lets libfabric load and start every provider that is installed, which it does once in a process
// and whichever is wanted later.
void start_libfabric();

// The first endpoint of options.provider that can do what OPTIONS ask for. It may ask for
// FI_MR_LOCAL, VIRT_ADDR, ALLOCATED, PROV_KEY and ENDPOINT (the program keeps all of them), for no
// mode bit. Ends the process when there is none.
Info select_info(const Options& options);

// The names of all providers that select_info() could answer with, whatever options.provider is.
std::set<std::string> usable_providers(const Options& options);

}  // namespace weft::bench
