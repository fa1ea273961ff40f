// SPDX-License-Identifier: BSD-2-Clause
// Which number explains a failed operation to a program of either front end?
#include "device/provider_error.h"

#include <cerrno>
#include <utility>

#include "memory/access_guard.h"

namespace weft::device {
namespace {

using enum work::CompletionStatus;

// EIO stands for the others.
constexpr std::pair<work::CompletionStatus, int> kErrnos[] = {
    {kSuccess, 0},
    {kLocalLength, kTruncated},
    {kLocalProtection, EFAULT},
    {kLocalAccess, EACCES},
    {kFlushed, ECANCELED},
    {kBadResponse, EPROTO},
    {kRemoteInvalidRequest, EREMOTEIO},
    {kRemoteAccess, EACCES},
    {kRemoteOperation, EREMOTEIO},
    {kRetryExceeded, ECONNRESET},
    {kRnrRetryExceeded, kNoReceives},
    {kRemoteAborted, ECONNABORTED},
    {kResponseTimeout, ETIMEDOUT},
    {kCancelled, ECANCELED},
    {kUnreachable, EHOSTUNREACH},
    {kNoMessage, ENOMSG},
    {kShutDown, ESHUTDOWN},
};

}  // namespace

int error_of(const work::Ending& ending) {
  if (ending.status == kGeneral && ending.error != 0) return static_cast<int>(ending.error);
  for (const auto& [status, error] : kErrnos) {
    if (status == ending.status) return error;
  }
  return EIO;
}

int provider_error(const Completion& completion) {
  return completion.reason != 0 ? kRefusals + completion.reason : error_of(completion);
}

const char* refusal_text(int provider_error) {
  if (provider_error < kRefusals) return nullptr;
  const int reason = provider_error - kRefusals;
  if (reason >= memory::kLocalRefusal && reason < 2 * memory::kLocalRefusal) {
    return memory::describe_local(static_cast<memory::AccessError>(reason - memory::kLocalRefusal));
  }
  return memory::describe(static_cast<memory::AccessError>(reason));
}

}  // namespace weft::device
