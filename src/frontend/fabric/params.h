// SPDX-License-Identifier: BSD-2-Clause
// Which FI_WEFT_* variables are there, and what did the user set?
#pragma once

#include <rdma/providers/fi_prov.h>

#include <string>

#include "messaging/options.h"

namespace weft::fabric {

// Everything that the environment decides, read once when the provider is loaded.
struct Parameters {
  messaging::Options options;
  std::string interface;         // the only interface to offer; empty: all
  int mr_modes = 0;              // mr_mode bits that the registration contract requires
  bool disable_layering = true;  // keep ofi_rxm, ofi_rxd and their kin off weft
};

// Makes the variables known to libfabric, so that `fi_info -e` lists them. `provider` is their
// owner and gives them their FI_<NAME>_ prefix. libfabric's table of variables has no lock: call
// from fi_prov_ini only.
void define_parameters(const fi_provider& provider);

// The values set by the user, else the defaults of messaging::Options. A value that makes no sense
// is reported as a warning and ignored. Call after define_parameters().
Parameters read_parameters(fi_provider& provider);

}  // namespace weft::fabric
