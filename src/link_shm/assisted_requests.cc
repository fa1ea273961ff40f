// SPDX-License-Identifier: BSD-2-Clause
// How does an initiator have small operations carried out by their owner, when that polls anyway?
#include "link_shm/assisted_requests.h"

#include <atomic>
#include <chrono>
#include <thread>

#include "os/barrier.h"
#include "os/clock.h"
#include "os/spin.h"
#include "os/user_memory.h"

namespace weft::shm {

using link::SendRequest;

namespace {

// After that the owner may have ended.
constexpr auto kAskKernel = std::chrono::milliseconds(10);
// Several times what an owner needs that polls; taking an assisted access back costs as much.
constexpr auto kAssistedWait = std::chrono::microseconds(4);
constexpr auto kTakenTimeout = std::chrono::seconds(2);
constexpr unsigned kLooksPerClock = 64;

// The cell of an assisted access at one remote range.
SendRequest question(link::MessageOperation operation, const RemoteRange& range) {
  SendRequest ask;
  ask.operation = operation;
  ask.tag = range.address;
  ask.data = range.key.v;
  return ask;
}

}  // namespace

// A request for one small range may be carried out by an owner that polls anyway: the system call
// by which this process reaches into another costs up to several times more.
bool AssistedRequests::fits(std::span<const RemoteRange> ranges, std::size_t most,
                            unsigned more_cells) {
  if (ranges.size() != 1 || ranges[0].length == 0 || ranges[0].length > most) return false;
  return slot_.header().attention.load(std::memory_order_relaxed) == Attention::kPolled &&
         !slot_.owner_is_this_process() && ring_.room_for(1 + more_cells);
}

bool AssistedRequests::publish(const link::AccessRequest& request) {
  Cell& cell = ring_.next_cell();
  const bool in_cell = request.length <= kAssistedBytesInCell;
  std::byte* bytes = in_cell ? cell.assisted.bytes : slot_.header().assisted.bytes;
  if (request.write && !os::gather(bytes, request.local, request.length)) return false;
  cell.assisted.length = static_cast<std::uint32_t>(request.length);
  cell.assisted.withdrawn = 0;
  const auto operation =
      request.write ? link::MessageOperation::kWriteEvent : link::MessageOperation::kReadEvent;
  ring_.publish(question(operation, request.remote[0]), CellKind::kAssisted);
  return true;
}

bool AssistedRequests::publish(const link::AtomicRequest& request) {
  Cell& cell = ring_.next_cell();
  const std::size_t length = operand_bytes(request.action, request.length);
  std::byte* bytes =
      length <= kAtomicAssistedBytesInCell ? cell.atomic.bytes : slot_.header().assisted.bytes;
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
  ring_.publish(question(link::MessageOperation::kWriteEvent, request.remote[0]),
                CellKind::kAtomicAssisted);
  return true;
}

AssistedRequests::Answer AssistedRequests::ask(const link::AccessRequest& request) {
  return publish(request) ? finish(!request.write, request.local, request.length) : Answer::kFault;
}

AssistedRequests::Answer AssistedRequests::ask(const link::AtomicRequest& request) {
  return publish(request) ? finish(request.action.fetches(), request.result, request.length)
                          : Answer::kFault;
}

// Waits for what the last cell asks for, and copies what the owner has read to `result`.
AssistedRequests::Answer AssistedRequests::finish(bool reads, std::span<const LocalRange> result,
                                                  std::size_t length) {
  const Answer answer = await(ring_.position() - 1);
  if (answer != Answer::kDone || !reads) return answer;
  return os::scatter(result, slot_.header().assisted.bytes, length) ? answer : Answer::kFault;
}

std::optional<AssistedRequests::Answer> AssistedRequests::answer_to(std::uint64_t position) const {
  const std::uint64_t word = slot_.header().assisted.word.load(std::memory_order_acquire);
  if (word == assisted_word(position, AssistedState::kDone)) return Answer::kDone;
  if (word == assisted_word(position, AssistedState::kRefused)) return Answer::kNotDone;
  return std::nullopt;
}

AssistedRequests::Answer AssistedRequests::await(std::uint64_t position) {
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
    if (!taken && waited > kAssistedWait) {
      if (take_back(position)) return Answer::kNotDone;
      taken = true;
    }
    if (waited < kAskKernel) continue;
    if (!slot_.owner().holds_lock()) {
      ring_.set_gone();
      return Answer::kNotDone;
    }
    if (waited > kTakenTimeout) {
      unanswered_ = position;
      return Answer::kUnknown;
    }
    std::this_thread::yield();
  }
}

bool AssistedRequests::unanswered() {
  if (unanswered_ && answer_to(*unanswered_)) unanswered_.reset();
  return unanswered_.has_value();
}

// False when the owner is at it already.
bool AssistedRequests::take_back(std::uint64_t position) {
  std::atomic_ref(ring_.cell_at(position).assisted.withdrawn).store(1, std::memory_order_relaxed);
  os::remote_barrier();
  return slot_.header().assisted_taken.load(std::memory_order_acquire) != position + 1;
}

}  // namespace weft::shm
