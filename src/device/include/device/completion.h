// SPDX-License-Identifier: BSD-2-Clause
// What is known about a finished operation?
#pragma once

#include <cstddef>
#include <cstdint>

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
};

// The address of a source that is not in the address vector.
inline constexpr std::uint64_t kUnknownSource = ~std::uint64_t{0};

// One entry of a completion queue.
struct Completion {
  void* context = nullptr;
  std::uint64_t flags = 0;
  std::size_t length = 0;  // bytes received
  void* buffer = nullptr;  // where the received message begins
  std::uint64_t data = 0;  // immediate data
  std::uint64_t tag = 0;
  std::uint64_t source = kUnknownSource;
  int error = 0;             // an errno, or 0; EMSGSIZE: the message was longer than the buffer
  int detail = 0;            // why an access was refused (memory::Refusal), or 0
  std::size_t overflow = 0;  // bytes of the message that did not fit
};

}  // namespace weft::device
