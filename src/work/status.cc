// SPDX-License-Identifier: BSD-2-Clause
// How did a work request end?
#include "work/status.h"

#include <cerrno>

namespace weft::work {

const char* describe(CompletionStatus status) {
  using enum CompletionStatus;
  switch (status) {
    case kSuccess:
      return "success";
    case kLocalLength:
      return "local length error";
    case kLocalOperation:
      return "local QP operation error";
    case kLocalEecOperation:
      return "local EE context operation error";
    case kLocalProtection:
      return "local protection error";
    case kFlushed:
      return "work request flushed error";
    case kWindowBind:
      return "memory window bind error";
    case kBadResponse:
      return "bad response error";
    case kLocalAccess:
      return "local access error";
    case kRemoteInvalidRequest:
      return "remote invalid request error";
    case kRemoteAccess:
      return "remote access error";
    case kRemoteOperation:
      return "remote operation error";
    case kRetryExceeded:
      return "transport retry counter exceeded";
    case kRnrRetryExceeded:
      return "RNR retry counter exceeded";
    case kLocalRddViolation:
      return "local RDD violation error";
    case kRemoteInvalidRdRequest:
      return "remote invalid RD request";
    case kRemoteAborted:
      return "aborted error";
    case kInvalidEecn:
      return "invalid EE context number";
    case kInvalidEecState:
      return "invalid EE context state";
    case kFatal:
      return "fatal error";
    case kResponseTimeout:
      return "response timeout error";
    case kGeneral:
      return "general error";
    case kCancelled:
      return "operation cancelled";
    case kUnreachable:
      return "peer unreachable";
    case kNoMessage:
      return "no such message";
    case kShutDown:
      return "connection shut down";
  }
  return "unknown status";
}

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
