// SPDX-License-Identifier: BSD-2-Clause
// How is a failed operation explained to a libfabric program? fi_cq(3), fi_errno(3)
#pragma once

#include <rdma/fi_eq.h>

#include <array>
#include <cstddef>

#include "device/completion.h"

namespace weft::fabric {

// Error data, with the zero at its end, has no more bytes (fi_domain_attr::max_err_data).
inline constexpr std::size_t kMaxErrorData = 256;
// Where error data lies that the program has given no place for.
using LentErrorData = std::array<char, kMaxErrorData>;

// Fills the fields that programs of that API version have: before 1.5 there was no err_data_size.
// The error data of a refused access is its sentence, as far as there is room for it: in the place
// that the entry names, from 1.5 on, or else in `lent`.
void fill_error(const device::Completion& completion, std::uint32_t api_version,
                LentErrorData& lent, fi_cq_err_entry& entry);

// A sentence for a prov_errno. Lives forever.
const char* error_text(int provider_errno);

// The same in a buffer of the program, as much as it takes, if there is one. `data` is null, or
// error data that fill_error() gave with that number: then it is the sentence of the refusal.
const char* error_text(int provider_errno, const void* data, char* buffer, std::size_t length);

}  // namespace weft::fabric
