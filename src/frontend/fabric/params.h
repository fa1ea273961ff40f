// SPDX-License-Identifier: BSD-2-Clause
// How do FI_WEFT_* variables become options?
#pragma once

#include <rdma/providers/fi_prov.h>

#include "base/options.h"

namespace weft::fabric {

// Makes the variables known to libfabric, so that `fi_info -e` lists them. `provider` is their
// owner and gives them their FI_<NAME>_ prefix. libfabric's table of variables has no lock: call
// from fi_prov_ini only.
void define_parameters(const fi_provider& provider);

// The values set by the user, else the defaults. A value that makes no sense is reported as a
// warning and ignored. Call after define_parameters().
Options read_parameters(fi_provider& provider);

}  // namespace weft::fabric
