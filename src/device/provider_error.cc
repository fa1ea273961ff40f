// SPDX-License-Identifier: BSD-2-Clause
// Which number explains a failed operation to a program of either front end?
#include "device/provider_error.h"

#include <cerrno>
#include <utility>

#include "memory/access_guard.h"
#include "memory/explanation.h"

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

const char* name_of(std::uint64_t flags) {
  if ((flags & kReceive) != 0) return "receive";
  if ((flags & kSend) != 0) return "send";
  if ((flags & kAtomic) != 0) return memory::kAtomicOperation;
  return (flags & kRead) != 0 ? "read" : "write";
}

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
  return memory::describe({.reason = provider_error - kRefusals});
}

std::string explain(std::uint64_t flags, const RefusedAccess& refused) {
  const bool local =
      refused.reason >= memory::kLocalRefusal && refused.reason < 2 * memory::kLocalRefusal;
  return memory::explain(refused, local ? "descriptor" : "key", name_of(flags));
}

}  // namespace weft::device
