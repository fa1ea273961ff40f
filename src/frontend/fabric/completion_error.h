// SPDX-License-Identifier: BSD-2-Clause
// How is a failed operation explained to a libfabric program? fi_cq(3), fi_errno(3)
#pragma once

#include <rdma/fi_eq.h>

#include "device/completion.h"

namespace weft::fabric {

// Fills the fields that programs of that API version have: before 1.5 there was no err_data_size.
void fill_error(const device::Completion& completion, std::uint32_t api_version,
                fi_cq_err_entry& entry);

// A sentence for a prov_errno. Lives forever.
const char* error_text(int provider_errno);

}  // namespace weft::fabric
