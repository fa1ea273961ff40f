// SPDX-License-Identifier: BSD-2-Clause
// Which sentences does a queue pair write about refused accesses? (RefusalLog)
#include <fmt/format.h>

#include <string>

#include "queue/queue_pair.h"
#include "target.h"

namespace weft::queue {

using work::CompletionStatus;

namespace {

const char* name_of(CompletionOpcode opcode) {
  switch (opcode) {
    case CompletionOpcode::kWrite:
      return "RDMA WRITE";
    case CompletionOpcode::kRead:
      return "RDMA READ";
    case CompletionOpcode::kCompareSwap:
      return "CMP_SWAP";
    case CompletionOpcode::kFetchAdd:
      return "FETCH_ADD";
    case CompletionOpcode::kReceive:
    case CompletionOpcode::kReceiveWrite:
      return "receive";
    case CompletionOpcode::kSend:
      break;
  }
  return "SEND";
}

}  // namespace

std::string QueuePair::name_of_peer() const {
  return fmt::format("QP {:#x} of {}", attributes_.destination, attributes_.address.remote.host());
}

// About a request of this end. With the send lock held.
void QueuePair::explain(const SendSlot& slot, CompletionStatus status, std::uint8_t reason) {
  const char* const why = reason != 0 ? memory::describe(static_cast<memory::AccessError>(reason))
                                      : "the peer gives no reason";
  const bool by_rule = status == CompletionStatus::kRemoteInvalidRequest && reason != 0;
  if (status == CompletionStatus::kRemoteAccess || by_rule) {
    setup_.refusals->own([&] {
      return fmt::format("QP {:#x}: {} of {} bytes at {:#x} with rkey {:#x} was refused by {}: {}",
                         qpn(), name_of(slot.opcode), slot.length, slot.address, slot.key,
                         name_of_peer(), why);
    });
  } else if (status == CompletionStatus::kLocalProtection) {
    setup_.refusals->own([&] {
      return fmt::format("QP {:#x}: {} of {} bytes (wr_id {:#x}) may not use its buffer: {}", qpn(),
                         name_of(slot.opcode), slot.length, slot.id,
                         reason != 0 ? why : "its memory is not mapped");
    });
  }
}

// The same about a request of the peer. With the port's lock held.
void QueuePair::explain_refusal() {
  if (!target_->take_refusal()) return;
  setup_.refusals->of_peer([this, &target = *target_] {
    return fmt::format("QP {:#x} refused a request of {}: {}", qpn(), name_of_peer(),
                       target.explanation());
  });
}

}  // namespace weft::queue
