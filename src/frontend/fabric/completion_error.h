// SPDX-License-Identifier: BSD-2-Clause
// How is a failed operation explained to a libfabric program? fi_cq(3), fi_errno(3)
#pragma once

#include <rdma/fi_eq.h>

#include "device/completion.h"

namespace weft::fabric {

// Provider error numbers (prov_errno) from here on are memory::Refusal values: why an access to
// remote memory was refused. Smaller ones are errno values.
inline constexpr int kRefusals = 1 << 16;

// The fabric errno for the ending of an operation. For what work::ending_of_errno() made of an
// errno it is that errno, but FI_ETRUNC for EMSGSIZE.
int fabric_errno(const work::Ending& ending);

// Fills the fields that programs of that API version have: before 1.5 there was no err_data_size.
void fill_error(const device::Completion& completion, std::uint32_t api_version,
                fi_cq_err_entry& entry);

// A sentence for a prov_errno. Lives forever.
const char* error_text(int provider_errno);

}  // namespace weft::fabric
