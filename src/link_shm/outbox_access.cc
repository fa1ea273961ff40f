// SPDX-License-Identifier: BSD-2-Clause
// How does an endpoint access the memory of another process of its host?
#include <algorithm>
#include <chrono>
#include <cstring>
#include <thread>

#include "base/slices.h"
#include "base/spin.h"
#include "link_shm/outbox.h"
#include "os/barrier.h"
#include "os/process_memory.h"

namespace weft::shm {

using link::Outcome;
using link::SendRequest;

namespace {

constexpr auto kTrustProcess = std::chrono::milliseconds(10);
// Several times what an owner needs that polls; taking an errand back costs as much.
constexpr auto kErrandPatience = std::chrono::microseconds(4);
constexpr auto kTakenPatience = std::chrono::seconds(2);
constexpr unsigned kLooksPerClock = 64;

}  // namespace

Status Outbox::attach_to_table() {
  char name[sizeof header().table];
  std::memcpy(name, header().table, sizeof name);
  name[sizeof name - 1] = '\0';
  auto table = memory::ForeignTable::open(sender_.directory, name);
  if (!table) return table.error();
  auto user = memory::TableUser::attach(std::move(table).value());
  if (!user) return user.error();
  table_ = std::move(user).value();
  return {};
}

// A request for one small range may be carried out by an owner that polls anyway: the system call
// by which this process reaches into another costs up to several times more.
bool Outbox::fits_an_errand(const link::AccessRequest& request, bool counts) {
  if (request.remote.size() != 1 || request.length == 0 || request.length > kErrandBytes) {
    return false;
  }
  return slot_->attention.load(std::memory_order_relaxed) == Attention::kPolled && !to_itself_ &&
         room_for_cell() && (!counts || next_ + 1 < limit_);
}

void Outbox::publish_errand(const link::AccessRequest& request) {
  Cell& cell = next_cell();
  if (request.write) {
    const bool in_cell = request.length <= kErrandBytesInCell;
    gather(in_cell ? cell.errand.bytes : slot_->errand.bytes, request.local, request.length);
  }
  cell.errand.length = static_cast<std::uint32_t>(request.length);
  cell.errand.withdrawn = 0;
  SendRequest ask;
  ask.operation = request.write ? link::Operation::kWriteEvent : link::Operation::kReadEvent;
  ask.tag = request.remote[0].address;
  ask.data = request.remote[0].key.v;
  publish(cell, ask, Kind::kErrand, false, 0);
}

// True when the owner has carried out the access. If not, nothing was done, unless the owner is
// gone.
bool Outbox::ask_owner(const link::AccessRequest& request) {
  const std::uint64_t position = next_;
  publish_errand(request);
  if (!await_errand(position)) return false;
  if (!request.write) scatter(request.local, slot_->errand.bytes, request.length);
  return true;
}

bool Outbox::await_errand(std::uint64_t position) {
  const auto& word = slot_->errand.word;
  const std::uint64_t taken = errand_word(position, ErrandState::kTaken);
  os::Time begin{};
  for (unsigned looks = 1;; ++looks) {
    const std::uint64_t now = word.load(std::memory_order_acquire);
    if (now == errand_word(position, ErrandState::kDone)) return true;
    if (now == errand_word(position, ErrandState::kRefused)) return false;
    if (looks < kLooksPerClock) continue;  // usually it comes before
    spin_pause();
    if (looks % kLooksPerClock != 0) continue;
    const os::Time moment = std::chrono::steady_clock::now();
    if (looks == kLooksPerClock) begin = moment;
    const auto waited = moment - begin;
    if (now != taken && waited > kErrandPatience && take_back(position)) return false;
    if (waited < kTrustProcess) continue;
    // It has stopped in the middle: only its end, or giving it up, makes that undone.
    if (waited > kTakenPatience || !is_there()) gone_ = true;
    if (gone_) return false;
    std::this_thread::yield();
  }
}

// False when the owner is at it already.
bool Outbox::take_back(std::uint64_t position) {
  std::atomic_ref(cells_[position % kCells].errand.withdrawn).store(1, std::memory_order_relaxed);
  os::remote_barrier();
  const std::uint64_t now = slot_->errand.word.load(std::memory_order_acquire);
  return now >> 2 != position || now == errand_word(position, ErrandState::kNone);
}

// Small accesses go whichever way is faster just now.
Outcome Outbox::access_small(const link::AccessRequest& request) {
  const bool asks = ways_.choose() == FasterWay::Way::kSecond;
  const bool timed = ways_.timed();
  const auto begin = timed ? std::chrono::steady_clock::now() : os::Time{};
  const bool done = asks && ask_owner(request);
  const Outcome outcome = done ? Outcome::done() : access_directly(request);
  if (asks && !done) {
    ways_.second_failed();
  } else if (timed) {
    ways_.took(std::chrono::steady_clock::now() - begin);
  }
  return outcome;
}

Outcome Outbox::access(const link::AccessRequest& request) {
  // The number of a process that has ended may become another's: never use an old one.
  if (os::coarse_now() - checked_ > kTrustProcess && !is_there()) gone_ = true;
  if (gone_) return Outcome::failed(ECONNRESET);
  const std::uint32_t counted = request.write ? kCountsWrites : kCountsReads;
  const bool counts =
      (header().counts_access.load(std::memory_order_relaxed) & counted) != 0 || request.has_data;
  if (counts && !room_for_cell()) return Outcome::again();
  const Outcome outcome =
      fits_an_errand(request, counts) ? access_small(request) : access_directly(request);
  if (counts && outcome.state == Outcome::State::kDone) announce(request);
  return outcome;
}

Outcome Outbox::access_directly(const link::AccessRequest& request) {
  if (gone_) return Outcome::failed(ECONNRESET);
  if (table_ == nullptr) {
    const Status attached = attach_to_table();
    // A living peer's table is there; it is gone when the peer is.
    if (!attached) return Outcome::failed(is_there() ? attached.error().code : ECONNRESET);
  }
  LocalRange targets[memory::kHazards];
  std::size_t culprit = 0;
  const Access need = request.write ? Access::kRemoteWrite : Access::kRemoteRead;
  const memory::Refusal refusal = table_->hold(domain_, need, request.remote, targets, culprit);
  if (refusal != memory::Refusal::kNone) {
    // A dead process leaves no regions: say that it is dead, not that its region is unknown.
    if (!is_there()) return Outcome::failed(ECONNRESET);
    if (request.explanation != nullptr) {
      *request.explanation = table_->explain(refusal, need, request.remote[culprit]);
    }
    return Outcome::failed(EACCES, static_cast<int>(refusal));
  }
  const auto direction =
      request.write ? os::CopyDirection::kToProcess : os::CopyDirection::kFromProcess;
  const int error =
      os::copy_process_memory(pid_, direction, request.local, {targets, request.remote.size()});
  table_->release();
  // It was reached when the outbox was opened: a process that is ending first loses its memory
  // (EPERM) and then its number (ESRCH).
  if (error != 0) return Outcome::failed(error == ESRCH || error == EPERM ? ECONNRESET : error);
  return Outcome::done();
}

void Outbox::announce(const link::AccessRequest& request) {
  SendRequest note;
  note.operation = request.has_data ? link::Operation::kWriteData
                   : request.write  ? link::Operation::kWriteEvent
                                    : link::Operation::kReadEvent;
  note.has_data = request.has_data;
  note.data = request.data;
  note.tag = request.length;
  publish(next_cell(), note, Kind::kInline, false, 0);
}

}  // namespace weft::shm
