// SPDX-License-Identifier: BSD-2-Clause
// Where do messages for a queue pair go, and how do their receives end?
#pragma once

#include <cstdint>
#include <optional>

#include "base/types.h"
#include "device/completion_queue.h"
#include "memory/access_guard.h"
#include "queue/completions.h"
#include "queue/receive_queue.h"
#include "work/status.h"
#include "work/target.h"

namespace weft::queue {

// A receive that has ended.
struct ReceiveEnding {
  std::uint64_t id = 0;
  CompletionOpcode opcode = CompletionOpcode::kReceive;
  work::CompletionStatus status = work::CompletionStatus::kSuccess;
  memory::AccessError reason = memory::AccessError::kNone;
  std::uint64_t length = 0;
  work::MessageEnd end;
  std::optional<std::uint32_t> source;  // of a datagram: the QPN of its sender
};

// Where ended receives are reported, and where receives come from that a request names (annex A14).
class ReceiveSink {
 public:
  virtual void received(const ReceiveEnding& receive, device::CompletionQueue* completions) = 0;

 protected:
  ~ReceiveSink() = default;
};

// The queue that a request takes receives from, and the domain of its memory.
struct ReceiveEnd {
  QpReceiveQueue* receives = nullptr;  // null: sends are refused
  DomainId domain;
  device::CompletionQueue* completions = nullptr;  // where they are reported
};

// The shared receive queues that requests of an extended reliable connection may name.
class SharedReceives {
 public:
  // Finds the queue of that number, whose completions `sink` gets from now on; false when there is
  // none.
  virtual bool find(std::uint32_t number, ReceiveEnd& end) = 0;
  // The number of this set within the process, not 0.
  virtual std::uint32_t group() const = 0;

 protected:
  ~SharedReceives() = default;
};

}  // namespace weft::queue
