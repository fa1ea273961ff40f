// SPDX-License-Identifier: BSD-2-Clause
// How is a failed operation explained to a libfabric program? fi_cq(3), fi_errno(3)
#include "completion_error.h"

#include <rdma/fabric.h>
#include <rdma/fi_errno.h>

#include <cerrno>

#include "memory/access_guard.h"

namespace weft::fabric {

int fabric_errno(int error) {
  if (error == EMSGSIZE) return FI_ETRUNC;
  return error == ENOKEY ? FI_ENOKEY : error;
}

void fill_error(const device::Completion& completion, std::uint32_t api_version,
                fi_cq_err_entry& entry) {
  entry.op_context = completion.context;
  entry.flags = completion.flags;
  entry.len = completion.length;
  entry.buf = completion.buffer;
  entry.data = completion.data;
  entry.tag = completion.tag;
  entry.olen = completion.overflow;
  entry.err = fabric_errno(completion.error);
  entry.prov_errno = completion.detail != 0 ? kRefusals + completion.detail : entry.err;
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
  if (provider_errno >= kRefusals) {
    return memory::describe(static_cast<memory::AccessError>(provider_errno - kRefusals));
  }
  return fi_strerror(provider_errno);
}

}  // namespace weft::fabric
