// SPDX-License-Identifier: BSD-2-Clause
// What is known about a finished operation?
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/refused_access.h"
#include "work/status.h"

namespace weft::device {

// What kind of operation it was, as bits. The values are those of libfabric's flags of the same
// meaning (fi_cq(3)), which its front end asserts, so that no completion needs a translation.
enum CompletionFlags : std::uint64_t {
  kMessage = 1ull << 1,
  kRma = 1ull << 2,
  kTagged = 1ull << 3,
  kAtomic = 1ull << 4,
  kMulticast = 1ull << 5,
  kRead = 1ull << 8,
  kWrite = 1ull << 9,
  kReceive = 1ull << 10,
  kSend = 1ull << 11,
  kRemoteRead = 1ull << 12,
  kRemoteWrite = 1ull << 13,
  kMultiReceive = 1ull << 16,  // the buffer of a multi-receive is the program's again
  kHasRemoteData = 1ull << 17,
  kClaimed = 1ull << 59,
  kSolicited = 1ull << 62,  // the peer asks for an event (ibv_req_notify_cq(3)); not for libfabric
};

// The address of a source that is not in the address vector.
inline constexpr std::uint64_t kUnknownSource = ~std::uint64_t{0};

// One entry of a completion queue: one cache line.
struct alignas(64) Completion {
  void* context = nullptr;
  std::uint64_t flags = 0;
  std::size_t length = 0;  // bytes received
  std::uint64_t data = 0;  // immediate data
  std::uint64_t tag = 0;
  union {                                   // no completion has both
    std::uint64_t source = kUnknownSource;  // of a message: a number of the address vector
    const void* owner;                      // of a work request: its queue pair
  };
  void* buffer = nullptr;  // where the received message begins
  work::CompletionStatus status = work::CompletionStatus::kSuccess;
  // For kRemoteAccess: why it was refused (memory::AccessError, for a local buffer with
  // memory::kLocalRefusal), or 0. See refuse().
  std::uint8_t reason = 0;
  // By status. kLocalLength: how many bytes of the message did not fit, at most kMaxVendor, which
  // no message in user memory reaches. kGeneral: an errno. Else 0.
  std::uint64_t vendor : 48 = 0;

  static constexpr std::uint64_t kMaxVendor = (std::uint64_t{1} << 48) - 1;

  bool ok() const { return status == work::CompletionStatus::kSuccess; }
  // The end that a link reports: an errno and why an access was refused, or 0 for each.
  void end(int error, int refusal) {
    const work::Ending ending = work::ending_of_errno(error);
    status = ending.status;
    reason = static_cast<std::uint8_t>(refusal);
    vendor = ending.error;
  }
  // The same of an access, or the use of a local buffer, that was refused: what is known of it
  // takes the place of length, data, buffer and source, of which a refused operation has none.
  void refuse(int error, const RefusedAccess& refused);
  // The argument of refuse().
  RefusedAccess refused() const;
};
static_assert(sizeof(Completion) == 64);

}  // namespace weft::device
