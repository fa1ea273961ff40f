// SPDX-License-Identifier: BSD-2-Clause
// How is a failed operation explained to a libfabric program? fi_cq(3), fi_errno(3)
#include "completion_error.h"

#include <rdma/fabric.h>
#include <rdma/fi_errno.h>

#include <cstring>

#include "device/provider_error.h"

namespace weft::fabric {

static_assert(device::kTruncated == FI_ETRUNC);
static_assert(device::kNoReceives == FI_ENORX);

void fill_error(const device::Completion& completion, std::uint32_t api_version,
                fi_cq_err_entry& entry) {
  entry.op_context = completion.context;
  entry.flags = completion.flags;
  entry.len = completion.length;
  entry.buf = completion.buffer;
  entry.data = completion.data;
  entry.tag = completion.tag;
  entry.olen = completion.status == work::CompletionStatus::kLocalLength ? completion.vendor : 0;
  entry.err = device::error_of(completion);
  entry.prov_errno = device::provider_error(completion);
  // No further data: with a buffer of the caller's its length says so, without one the pointer
  // does.
  if (FI_VERSION_LT(api_version, FI_VERSION(1, 5))) {
    entry.err_data = nullptr;
    return;
  }
  if (entry.err_data_size == 0) entry.err_data = nullptr;
  entry.err_data_size = 0;
}

const char* error_text(int provider_errno) {
  if (const char* const text = device::refusal_text(provider_errno)) return text;
  return fi_strerror(provider_errno);
}

const char* error_text(int provider_errno, char* buffer, std::size_t length) {
  const char* text = error_text(provider_errno);
  if (buffer == nullptr || length == 0) return text;
  std::strncpy(buffer, text, length - 1);
  buffer[length - 1] = '\0';
  return buffer;
}

}  // namespace weft::fabric
