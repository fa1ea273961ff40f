// SPDX-License-Identifier: BSD-2-Clause
// How did a work request end?
#include "work/status.h"

#include <cerrno>

namespace weft::work {

Ending ending_of_errno(int error) {
  using enum CompletionStatus;
  switch (error) {
    case 0:
      return {};
    case EMSGSIZE:
      return {kLocalLength};
    case EFAULT:
      return {kLocalProtection};
    case EPROTO:
      return {kBadResponse};
    case EACCES:
      return {kRemoteAccess};
    case ECONNRESET:
      return {kRetryExceeded};
    case ETIMEDOUT:
      return {kResponseTimeout};
    case ECANCELED:
      return {kCancelled};
    case EHOSTUNREACH:
      return {kUnreachable};
    case ENOMSG:
      return {kNoMessage};
    case ESHUTDOWN:
      return {kShutDown};
    default:
      return {kGeneral, static_cast<std::uint32_t>(error)};
  }
}

}  // namespace weft::work
