// SPDX-License-Identifier: BSD-2-Clause
// How does an endpoint have small accesses carried out by their owner, when that polls anyway?
#include <algorithm>
#include <chrono>
#include <thread>

#include "link_shm/outbox.h"
#include "os/barrier.h"
#include "os/spin.h"
#include "os/user_memory.h"

namespace weft::shm {

using link::SendRequest;

namespace {

// After that the owner may have ended.
constexpr auto kAskKernel = std::chrono::milliseconds(10);
// Several times what an owner needs that polls; taking an assisted access back costs as much.
constexpr auto kAssistedPatience = std::chrono::microseconds(4);
constexpr auto kTakenPatience = std::chrono::seconds(2);
constexpr unsigned kLooksPerClock = 64;

// The cell of an assisted access at one remote range.
SendRequest question(link::Operation operation, const RemoteRange& range) {
  SendRequest ask;
  ask.operation = operation;
  ask.tag = range.address;
  ask.data = range.key.v;
  return ask;
}

}  // namespace

// A request for one small range may be carried out by an owner that polls anyway: the system call
// by which this process reaches into another costs up to several times more.
bool Outbox::fits_assisted(std::span<const RemoteRange> ranges, std::size_t most, bool counts) {
  if (ranges.size() != 1 || ranges[0].length == 0 || ranges[0].length > most) return false;
  return slot_->attention.load(std::memory_order_relaxed) == Attention::kPolled && !to_itself_ &&
         room_for_cells(counts ? 2 : 1);
}

bool Outbox::publish_assisted(const link::AccessRequest& request) {
  Cell& cell = next_cell();
  const bool in_cell = request.length <= kAssistedBytesInCell;
  std::byte* bytes = in_cell ? cell.assisted.bytes : slot_->assisted.bytes;
  if (request.write && !os::gather(bytes, request.local, request.length)) return false;
  cell.assisted.length = static_cast<std::uint32_t>(request.length);
  cell.assisted.withdrawn = 0;
  const auto operation = request.write ? link::Operation::kWriteEvent : link::Operation::kReadEvent;
  publish(cell, question(operation, request.remote[0]), Kind::kAssisted, false, 0);
  return true;
}

bool Outbox::publish_assisted(const link::AtomicRequest& request) {
  Cell& cell = next_cell();
  const std::size_t length = operand_bytes(request.action, request.length);
  std::byte* bytes =
      length <= kAtomicAssistedBytesInCell ? cell.atomic.bytes : slot_->assisted.bytes;
  cell.atomic.length = static_cast<std::uint32_t>(request.length);
  cell.atomic.withdrawn = 0;
  cell.atomic.form = request.action.form;
  cell.atomic.op = request.action.op;
  cell.atomic.type = request.action.type;
  const std::size_t operand = request.action.has_operand() ? request.length : 0;
  const std::size_t compare = request.action.compares() ? request.length : 0;
  if (!os::gather(bytes, request.operand, operand) ||
      !os::gather(bytes + request.length, request.compare, compare)) {
    return false;
  }
  publish(cell, question(link::Operation::kWriteEvent, request.remote[0]), Kind::kAtomicAssisted,
          false, 0);
  return true;
}

Outbox::Answer Outbox::ask_owner(const link::AccessRequest& request) {
  const std::uint64_t position = next_;
  if (!publish_assisted(request)) return Answer::kFault;
  const Answer answer = await_assisted(position);
  if (answer != Answer::kDone || request.write) return answer;
  const bool placed = os::scatter(request.local, slot_->assisted.bytes, request.length).has_value();
  return placed ? answer : Answer::kFault;
}

Outbox::Answer Outbox::ask_owner(const link::AtomicRequest& request) {
  const std::uint64_t position = next_;
  if (!publish_assisted(request)) return Answer::kFault;
  const Answer answer = await_assisted(position);
  if (answer != Answer::kDone || !request.action.fetches()) return answer;
  const bool placed =
      os::scatter(request.result, slot_->assisted.bytes, request.length).has_value();
  return placed ? answer : Answer::kFault;
}

std::optional<Outbox::Answer> Outbox::answer_to(std::uint64_t position) const {
  const std::uint64_t word = slot_->assisted.word.load(std::memory_order_acquire);
  if (word == assisted_word(position, AssistedState::kDone)) return Answer::kDone;
  if (word == assisted_word(position, AssistedState::kRefused)) return Answer::kNotDone;
  return std::nullopt;
}

Outbox::Answer Outbox::await_assisted(std::uint64_t position) {
  bool taken = false;  // the owner has begun to carry it out, and cannot be stopped
  os::Time begin{};
  for (unsigned looks = 1;; ++looks) {
    if (const auto answer = answer_to(position)) return *answer;
    if (looks < kLooksPerClock) continue;  // the usual answer takes less than this
    spin_pause();
    if (looks % kLooksPerClock != 0) continue;
    const os::Time moment = std::chrono::steady_clock::now();
    if (looks == kLooksPerClock) begin = moment;
    const auto waited = moment - begin;
    if (!taken && waited > kAssistedPatience) {
      if (take_back(position)) return Answer::kNotDone;
      taken = true;
    }
    if (waited < kAskKernel) continue;
    if (!is_there()) {
      gone_ = true;
      return Answer::kNotDone;
    }
    if (waited > kTakenPatience) {
      unanswered_ = position;
      return Answer::kUnknown;
    }
    std::this_thread::yield();
  }
}

// The owner was stopped between taking an assisted access and answering it. When it goes on, it
// carries the assisted access out: a newer access by this process would be overwritten then, so
// there must be none.
bool Outbox::assisted_unanswered() {
  if (!answer_to(*unanswered_)) return true;
  unanswered_.reset();
  return false;
}

// False when the owner is at it already.
bool Outbox::take_back(std::uint64_t position) {
  std::atomic_ref(cells_[position % kCells].assisted.withdrawn).store(1, std::memory_order_relaxed);
  os::remote_barrier();
  return slot_->assisted_taken.load(std::memory_order_acquire) != position + 1;
}

}  // namespace weft::shm
