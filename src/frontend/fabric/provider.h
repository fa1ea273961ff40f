// SPDX-License-Identifier: BSD-2-Clause
// How does libfabric find weft? The entry point of the provider library, fi_provider(3).
#pragma once

#include <rdma/providers/fi_prov.h>

// Called once by libfabric after it has loaded the library; returns the provider, which stays valid
// until its cleanup() returns. Never null.
extern "C" __attribute__((visibility("default"))) fi_provider* fi_prov_ini(void);
