// SPDX-License-Identifier: BSD-2-Clause
// Which number explains a failed operation to a program of either front end?
// (prov_errno of fi_cq_readerr(3), vendor_err of ibv_poll_cq(3); docs/user/reasons.md)
#pragma once

#include <string>

#include "device/completion.h"

namespace weft::device {

// From here on a number is this one and a memory::AccessError: why an access was refused. Smaller
// ones are errno values, and those of libfabric below.
inline constexpr int kRefusals = 1 << 16;
// Errno values of libfabric (fi_errno(3)), which its front end asserts.
inline constexpr int kTruncated = 265;   // FI_ETRUNC
inline constexpr int kNoReceives = 269;  // FI_ENORX

// The errno for the ending of an operation; 0 for success. For what work::ending_of_errno() made of
// an errno it is that errno, but kTruncated for EMSGSIZE.
int error_of(const work::Ending& ending);
inline int error_of(const Completion& completion) {
  return error_of({completion.status, static_cast<std::uint32_t>(completion.vendor)});
}

// Why the operation of that completion failed; 0 for success.
int provider_error(const Completion& completion);
// A sentence for a number from kRefusals on; null for a smaller one. Lives forever.
const char* refusal_text(int provider_error);
// The sentence with the numbers of a refused access (memory/explanation.h), of an operation with
// those CompletionFlags.
std::string explain(std::uint64_t flags, const RefusedAccess& refused);

}  // namespace weft::device
