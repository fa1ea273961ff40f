// SPDX-License-Identifier: BSD-2-Clause
// What does a completion of a queue pair say beside its status? (struct ibv_wc)
#pragma once

#include <cstdint>

#include "device/completion.h"

namespace weft::queue {

// The kind of work that has ended. The numbers are those of enum ibv_wc_opcode, which the verbs
// front end asserts.
enum class CompletionOpcode : std::uint8_t {
  kSend = 0,
  kWrite = 1,
  kRead = 2,
  kCompareSwap = 3,
  kFetchAdd = 4,
  kReceive = 128,
  kReceiveWrite = 129,  // a write of the peer with immediate data
};

// How completions of queue pairs use device::Completion:
//   context   the number that the program gave the work request (wr_id)
//   owner     the QueuePair; null of a receive of an XRC target, which may go before it is polled
//   flags     kCompletion* below, and device::kSolicited
//   length    bytes received, or read
//   data      immediate data, as in host order
//   tag       the QPN of the queue pair, above 32 bits: of a send request, how many slots of the
//   send
//             queue its poll frees; of a receive, the QPN of the sender
//   time      when it was added, in ns of CLOCK_MONOTONIC (in place of `buffer`)
//   reason, vendor: why an access was refused, as of libfabric's endpoints
inline constexpr unsigned kOpcodeShift = 32;  // CompletionOpcode, 8 bits
inline constexpr std::uint64_t kHasImmediate = 1ull << 40;
inline constexpr std::uint64_t kHasGrh = 1ull << 41;
inline constexpr std::uint64_t kInvalidated = 1ull << 42;  // `data` is the key

constexpr std::uint64_t flags_of(CompletionOpcode opcode) {
  return std::uint64_t{static_cast<std::uint8_t>(opcode)} << kOpcodeShift;
}
constexpr std::uint64_t tag_of(std::uint32_t qpn, std::uint32_t detail) {
  return std::uint64_t{qpn} << 32 | detail;
}
// The QPN of the queue pair, and of a receive that of the sender.
constexpr std::uint32_t qpn_of(const device::Completion& completion) {
  return static_cast<std::uint32_t>(completion.tag >> 32);
}
constexpr std::uint32_t sender_of(const device::Completion& completion) {
  return static_cast<std::uint32_t>(completion.tag);
}
constexpr CompletionOpcode opcode_of(const device::Completion& completion) {
  return static_cast<CompletionOpcode>(completion.flags >> kOpcodeShift & 0xFF);
}

}  // namespace weft::queue
