// SPDX-License-Identifier: BSD-2-Clause
// How did a work request end?
#include "work/status.h"

#include <cerrno>
#include <utility>

namespace weft::work {

namespace {

using enum CompletionStatus;

// The errnos that have a status of their own.
constexpr std::pair<int, CompletionStatus> kStatuses[] = {
    {0, kSuccess},
    {EMSGSIZE, kLocalLength},
    {EFAULT, kLocalProtection},
    {EPROTO, kBadResponse},
    {EACCES, kRemoteAccess},
    {ECONNRESET, kRetryExceeded},
    {ETIMEDOUT, kResponseTimeout},
    {ECANCELED, kCancelled},
    {EHOSTUNREACH, kUnreachable},
    {ENOMSG, kNoMessage},
    {ESHUTDOWN, kShutDown},
};

}  // namespace

Ending ending_of_errno(int error) {
  for (const auto& [known, status] : kStatuses) {
    if (known == error) return {status};
  }
  return {kGeneral, static_cast<std::uint32_t>(error)};
}

}  // namespace weft::work
