// SPDX-License-Identifier: BSD-2-Clause
// How is a failed operation explained to a libfabric program? fi_cq(3), fi_errno(3)
#include "completion_error.h"

#include <rdma/fabric.h>
#include <rdma/fi_errno.h>

#include <cerrno>

#include "memory/access_guard.h"

namespace weft::fabric {

int fabric_errno(const work::Ending& ending) {
  using enum work::CompletionStatus;
  switch (ending.status) {
    case kSuccess:
      return FI_SUCCESS;
    case kLocalLength:
      return FI_ETRUNC;
    case kLocalProtection:
      return FI_EFAULT;
    case kLocalAccess:
    case kRemoteAccess:
      return FI_EACCES;
    case kFlushed:
    case kCancelled:
      return FI_ECANCELED;
    case kBadResponse:
      return EPROTO;  // libfabric has no name of its own for it
    case kRemoteInvalidRequest:
    case kRemoteOperation:
      return FI_EREMOTEIO;
    case kRetryExceeded:
      return FI_ECONNRESET;
    case kRnrRetryExceeded:
      return FI_ENORX;
    case kRemoteAborted:
      return FI_ECONNABORTED;
    case kResponseTimeout:
      return FI_ETIMEDOUT;
    case kUnreachable:
      return FI_EHOSTUNREACH;
    case kNoMessage:
      return FI_ENOMSG;
    case kShutDown:
      return FI_ESHUTDOWN;
    case kGeneral:
      return ending.error != 0 ? static_cast<int>(ending.error) : FI_EIO;
    case kLocalOperation:
    case kLocalEecOperation:
    case kWindowBind:
    case kLocalRddViolation:
    case kRemoteInvalidRdRequest:
    case kInvalidEecn:
    case kInvalidEecState:
    case kFatal:
      return FI_EIO;
  }
  return FI_EOTHER;
}

void fill_error(const device::Completion& completion, std::uint32_t api_version,
                fi_cq_err_entry& entry) {
  entry.op_context = completion.context;
  entry.flags = completion.flags;
  entry.len = completion.length;
  entry.buf = completion.buffer;
  entry.data = completion.data;
  entry.tag = completion.tag;
  entry.olen = completion.status == work::CompletionStatus::kLocalLength ? completion.vendor : 0;
  entry.err = fabric_errno({completion.status, static_cast<std::uint32_t>(completion.vendor)});
  entry.prov_errno = completion.reason != 0 ? kRefusals + completion.reason : entry.err;
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
