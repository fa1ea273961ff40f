// SPDX-License-Identifier: BSD-2-Clause
// Which send requests of a queue pair have not been completed? (ibv_post_send(3))
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "queue/completions.h"
#include "work/work.h"

namespace weft::queue {

class AddressHandle;

// A send request as a front end gives it.
struct QpSendRequest {
  std::uint64_t id = 0;  // the program's (wr_id)
  work::Work work;       // without cookie; `sges` stay the caller's during the call only
  CompletionOpcode opcode = CompletionOpcode::kSend;
  bool signaled = false;
  bool copied = false;  // the bytes are the caller's during the call only (IBV_SEND_INLINE)
  // Not kSuccess: nothing of it is sent, and it ends in its turn with that status.
  work::CompletionStatus refusal = work::CompletionStatus::kSuccess;
  // For datagrams.
  const AddressHandle* to = nullptr;
  std::uint32_t destination = 0;
  std::uint32_t queue_key = 0;
};

// A slot of a send queue: what is kept of a request until a completion that covers it was polled.
struct SendSlot {
  std::uint64_t id = 0;
  std::uint64_t length = 0;
  std::uint64_t address = 0;   // of a one-sided operation: where at the peer,
  std::uint32_t key = 0;       // and by which rkey
  std::uint64_t original = 0;  // of an atomic operation
  work::Segment result;        // where that goes
  CompletionOpcode opcode = CompletionOpcode::kSend;
  bool signaled = false;
};

// The slots of one queue pair, a ring. take() and ended() are for one thread at a time, retire()
// for any. A request without a completion keeps its slot until a later completion was polled, as on
// hardware.
class QpSendQueue {
 public:
  QpSendQueue(std::uint32_t requests, std::uint32_t inline_bytes);
  QpSendQueue(const QpSendQueue&) = delete;
  QpSendQueue& operator=(const QpSendQueue&) = delete;

  // A slot for the next request; null when all are in use.
  SendSlot* take();
  // Undoes the last take().
  void give_back() { --taken_; }
  // Where the inline bytes of that slot are kept: inline_bytes() of them.
  std::byte* inline_place(const SendSlot& slot);
  // The oldest request that has not ended does so. Returns how many slots the poll of its
  // completion frees; 0 for one without a completion, which a later one frees.
  std::uint32_t ended(bool completes);
  // A completion was polled that frees so many slots.
  void retire(std::uint32_t slots) { retired_.fetch_add(slots, std::memory_order_release); }
  // Forgets all requests.
  void clear();

  std::uint32_t size() const { return static_cast<std::uint32_t>(slots_.size()); }
  std::uint32_t inline_bytes() const { return inline_bytes_; }
  // Slots that are free.
  std::uint32_t room() const {
    return size() - static_cast<std::uint32_t>(taken_ - retired_.load(std::memory_order_acquire));
  }
  // The oldest slot whose request has not ended.
  const SendSlot& oldest() const { return slots_[ended_ % slots_.size()]; }
  // Requests that have not ended.
  std::uint32_t pending() const { return static_cast<std::uint32_t>(taken_ - ended_); }

 private:
  std::vector<SendSlot> slots_;
  const std::uint32_t inline_bytes_;
  const std::unique_ptr<std::byte[]> bytes_;  // pages exist only where something was written
  // Counts since the beginning.
  std::uint64_t taken_ = 0;
  std::uint64_t ended_ = 0;
  std::uint64_t reported_ = 0;  // of the ended ones, those that a completion covers
  std::atomic<std::uint64_t> retired_{0};
};

}  // namespace weft::queue
