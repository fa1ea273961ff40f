// SPDX-License-Identifier: BSD-2-Clause
// Which data transfer calls are there, and what does a test say to make one?
#pragma once

#include <rdma/fabric.h>
#include <rdma/fi_atomic.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_rma.h>
#include <rdma/fi_tagged.h>
#include <sys/uio.h>

#include <cstddef>
#include <cstdint>
#include <span>

namespace weft::conformance {

enum class Kind : std::uint8_t {
  kSend,
  kSendv,
  kSendmsg,
  kInject,
  kSenddata,
  kInjectdata,
  kTsend,
  kTsendv,
  kTsendmsg,
  kTinject,
  kTsenddata,
  kTinjectdata,
  kRecv,
  kRecvv,
  kRecvmsg,
  kTrecv,
  kTrecvv,
  kTrecvmsg,
  kWrite,
  kWritev,
  kWritemsg,
  kInjectWrite,
  kWritedata,
  kInjectWritedata,
  kRead,
  kReadv,
  kReadmsg,
  // Atomic operations on 64-bit elements, at most kAtomicBytes; the buffer takes fetched values.
  kAtomic,
  kInjectAtomic,
  kFetchAtomic,
  kCompareAtomic,
};
inline constexpr std::size_t kAtomicBytes = 64;

// What the rules depend on, for each call.
struct Traits {
  const char* name;
  bool receive = false;
  bool tagged = false;
  bool rma = false;
  bool read = false;
  bool message = false;  // The call takes a flags argument.
  bool inject = false;   // No completion on success; the buffer is free on return.
  bool data = false;     // Carries remote CQ data without being told by a flag.
  bool atomic = false;
};
const Traits& traits(Kind kind);

// One data transfer. Trivially copyable: it travels to peer processes.
struct Operation {
  Kind kind = Kind::kSend;
  std::uint64_t length = 0;
  std::uint64_t seed = 0;  // Pattern of the source buffer.
  fi_addr_t peer = FI_ADDR_UNSPEC;
  std::uint64_t tag = 0;
  std::uint64_t ignore = 0;
  std::uint64_t data = 0;
  std::uint64_t flags = 0;  // For calls that take flags.
  std::uint64_t remote_address = 0;
  std::uint64_t key = 0;
  std::uint32_t misalignment = 0;
  std::uint32_t delay_us = 0;  // The party waits (with progress) before it posts.
  // RMA: the second half of the remote range is asked for with this key instead, when split.
  bool split_remote = false;
  std::uint64_t second_key = 0;
  // With FI_TRIGGER: it starts when the party's counter of this event has come to the threshold.
  std::uint64_t trigger = 0;
  std::uint64_t threshold = 0;
};

// A message of these pieces, which must outlive it; without data.
inline fi_msg message_of(std::span<const iovec> pieces, fi_addr_t peer, void* context) {
  return {pieces.data(), nullptr, pieces.size(), peer, context, 0};
}

// Makes the call for `operation` over `buffer` (operation.length bytes) and returns its result.
ssize_t issue(fid_ep* ep, const Operation& operation, std::uint8_t* buffer, void* context);

}  // namespace weft::conformance
