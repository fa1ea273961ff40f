// SPDX-License-Identifier: BSD-2-Clause
// Which number explains a failed operation to a program of either front end?
#include "device/provider_error.h"

#include <cerrno>

#include "memory/access_guard.h"

namespace weft::device {

int error_of(const work::Ending& ending) {
  using enum work::CompletionStatus;
  switch (ending.status) {
    case kSuccess:
      return 0;
    case kLocalLength:
      return kTruncated;
    case kLocalProtection:
      return EFAULT;
    case kLocalAccess:
    case kRemoteAccess:
      return EACCES;
    case kFlushed:
    case kCancelled:
      return ECANCELED;
    case kBadResponse:
      return EPROTO;
    case kRemoteInvalidRequest:
    case kRemoteOperation:
      return EREMOTEIO;
    case kRetryExceeded:
      return ECONNRESET;
    case kRnrRetryExceeded:
      return kNoReceives;
    case kRemoteAborted:
      return ECONNABORTED;
    case kResponseTimeout:
      return ETIMEDOUT;
    case kUnreachable:
      return EHOSTUNREACH;
    case kNoMessage:
      return ENOMSG;
    case kShutDown:
      return ESHUTDOWN;
    case kGeneral:
      return ending.error != 0 ? static_cast<int>(ending.error) : EIO;
    case kLocalOperation:
    case kLocalEecOperation:
    case kWindowBind:
    case kLocalRddViolation:
    case kRemoteInvalidRdRequest:
    case kInvalidEecn:
    case kInvalidEecState:
    case kFatal:
      return EIO;
  }
  return kOther;
}

int provider_error(const Completion& completion) {
  return completion.reason != 0 ? kRefusals + completion.reason : error_of(completion);
}

const char* refusal_text(int provider_error) {
  if (provider_error < kRefusals) return nullptr;
  return memory::describe(static_cast<memory::AccessError>(provider_error - kRefusals));
}

}  // namespace weft::device
