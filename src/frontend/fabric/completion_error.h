// SPDX-License-Identifier: BSD-2-Clause
// How is a failed operation explained to a libfabric program? fi_cq(3), fi_errno(3)
#pragma once

#include <rdma/fi_eq.h>

#include <cstddef>

#include "device/completion.h"

namespace weft::fabric {

// Fills the fields that programs of that API version have: before 1.5 there was no err_data_size.
void fill_error(const device::Completion& completion, std::uint32_t api_version,
                fi_cq_err_entry& entry);

// A sentence for a prov_errno. Lives forever.
const char* error_text(int provider_errno);

// The same in a buffer of the program, as much as it takes, if there is one.
const char* error_text(int provider_errno, char* buffer, std::size_t length);

// fi_cq_strerror(3), fi_eq_strerror(3).
template <class Queue>
const char* give_error_text(Queue*, int code, const void*, char* buffer, std::size_t length) {
  return error_text(code, buffer, length);
}

}  // namespace weft::fabric
