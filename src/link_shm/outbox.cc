// SPDX-License-Identifier: BSD-2-Clause
// How does an endpoint send to, and access the memory of, another process of its host?
#include "link_shm/outbox.h"

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/slices.h"
#include "link_shm/paired_copy.h"
#include "link_shm/slot_memory.h"
#include "os/user_memory.h"

namespace weft::shm {

using link::Outcome;
using link::SendRequest;

namespace {

constexpr std::size_t kMaxQueued = 65536;

// A piece of a message that this end copies cannot be read.
Outcome unmapped() { return Outcome::failed(EFAULT); }

}  // namespace

bool Outbox::room_for_cells(std::uint64_t count) {
  if (next_ + count <= limit_) [[likely]]
    return true;
  const std::uint64_t consumed = slot_->cells_consumed.load(std::memory_order_acquire);
  // The owner's word counts only as far as it can be true.
  if (consumed > next_) return false;
  limit_ = consumed + kCells;
  return next_ + count <= limit_;
}

bool Outbox::room_in_bulk(std::uint64_t length) {
  const std::uint64_t offset = bulk_next_ % kBulkBytes;
  const std::uint64_t skip = offset + length > kBulkBytes ? kBulkBytes - offset : 0;
  if (bulk_next_ + skip + length > bulk_limit_) {
    const std::uint64_t consumed = slot_->bulk_consumed.load(std::memory_order_acquire);
    if (consumed > bulk_next_) return false;
    bulk_limit_ = consumed + kBulkBytes;
    if (bulk_next_ + skip + length > bulk_limit_) return false;
  }
  bulk_next_ += skip;
  return true;
}

bool Outbox::back_bulk() {
  if (!bulk_backed_) bulk_backed_ = shm::back_bulk(*file_, number_).ok();
  return bulk_backed_;
}

Cell& Outbox::next_cell() { return cells_[next_ % kCells]; }

void Outbox::attract_attention() {
  // See fall_asleep(): the owner runs a barrier here when it asks for attention, if it can.
  if (must_fence_) {
    std::atomic_thread_fence(std::memory_order_seq_cst);
  } else {
    std::atomic_signal_fence(std::memory_order_seq_cst);
  }
  const Attention wanted = slot_->attention.load(std::memory_order_relaxed);
  if (wanted == Attention::kPolled) [[likely]]
    return;
  if (wanted == Attention::kGone) {
    gone_ = true;
    return;
  }
  mark_rung(number_);
}

// The bell first: a sender that is stopped in between leaves the mark, so that others ring, too. By
// the time that it goes on, the owner may have slept anew: that mark is not this sender's to clear.
void Outbox::mark_rung(std::uint32_t number) {
  header().rung[number / 64].fetch_or(std::uint64_t{1} << (number % 64));
  header().summary.fetch_or(std::uint64_t{1} << (number / 64));
  std::uint32_t sleep = header().asleep.load();
  if (sleep == 0) return;
  const os::WakerName waker = header().waker;
  sender_.waker->ring(waker);
  header().asleep.compare_exchange_strong(sleep, 0);
}

Outcome Outbox::send(const SendRequest& request) {
  if (next_ < limit_ && request.length <= kInlineBytes && !request.until_delivered && !gone_ &&
      queue_.empty()) [[likely]] {
    return send_inline(request);
  }
  // A request must not become pending here: it could not be sent to a successor any more.
  if (gone_ || slot_->attention.load(std::memory_order_relaxed) == Attention::kGone) {
    gone_ = true;
    return Outcome::failed(ECONNRESET);
  }
  return queue_.empty() ? dispatch(request) : enqueue(request);
}

Outcome Outbox::dispatch(const SendRequest& request) {
  if (!room_for_cell()) return Outcome::again();
  if (request.length <= kInlineBytes && !request.until_delivered) return send_inline(request);
  if (request.length <= sender_.eager_limit || request.must_copy) return send_bulk(request);
  return send_offer(request);
}

Outcome Outbox::enqueue(const SendRequest& request) {
  if (request.must_copy || queue_.size() >= kMaxQueued) return Outcome::again();
  Queued& queued = queue_.emplace_back();
  queued.request = request;
  std::copy(request.pieces.begin(), request.pieces.end(), queued.pieces);
  queued.request.pieces = {queued.pieces, request.pieces.size()};
  return Outcome::pending();
}

void Outbox::drain_queue(link::FlowSink& sink) {
  while (!queue_.empty() && have_exchange()) {
    const SendRequest& request = queue_.front().request;
    const Outcome outcome = dispatch(request);
    if (outcome.state == Outcome::State::kAgain) return;
    if (outcome.state != Outcome::State::kPending) sink.ended(request.cookie, outcome.error, 0);
    queue_.pop_front();
  }
}

Outcome Outbox::send_inline(const SendRequest& request) {
  Cell& cell = next_cell();
  if (!os::gather(cell.bytes, request.pieces, request.length)) return unmapped();
  publish(cell, request, Kind::kInline, false, request.length);
  return gone_ ? Outcome::failed(ECONNRESET) : Outcome::done();
}

Outcome Outbox::send_bulk(const SendRequest& request) {
  const bool wants_ack = request.until_delivered;
  if (wants_ack && !have_exchange()) return enqueue(request);
  if (!back_bulk()) return Outcome::failed(ENOSPC);
  const std::uint64_t room = align_up(request.length, kCacheLine);
  if (!room_in_bulk(room)) return Outcome::again();
  const auto offset = static_cast<std::uint32_t>(bulk_next_ % kBulkBytes);
  if (!os::gather(bulk_ + offset, request.pieces, request.length)) return unmapped();
  bulk_next_ += room;
  Cell& cell = next_cell();
  const std::uint32_t exchange = wants_ack ? start_exchange(request, Kind::kBulk) : 0;
  cell.bulk = {bulk_next_, offset, static_cast<std::uint32_t>(request.length), exchange};
  publish(cell, request, Kind::kBulk, wants_ack, 0);
  if (wants_ack) return Outcome::pending();
  return gone_ ? Outcome::failed(ECONNRESET) : Outcome::done();
}

Outcome Outbox::send_offer(const SendRequest& request) {
  if (!have_exchange()) return enqueue(request);
  Cell& cell = next_cell();
  cell.offered = {request.length, start_exchange(request, Kind::kOffered)};
  publish(cell, request, Kind::kOffered, false, 0);
  return Outcome::pending();
}

// Exchanges get memory a block at a time, when all others are in use.
bool Outbox::have_exchange() {
  if (!free_.empty()) return true;
  const auto first = static_cast<std::uint32_t>(pending_.size());
  if (first == kExchanges || !back_exchanges(*file_, number_, first)) return false;
  pending_.resize(first + kExchangeBlock);
  for (std::uint32_t i = kExchangeBlock; i-- > 0;) free_.push_back(first + i);
  return true;
}

std::uint32_t Outbox::start_exchange(const SendRequest& request, Kind kind) {
  const std::uint32_t number = free_.back();
  free_.pop_back();
  active_.push_back(number);
  Pending& mine = pending_[number];
  mine.cookie = request.cookie;
  mine.length = request.length;
  mine.count = static_cast<std::uint32_t>(request.pieces.size());
  mine.reported = false;
  mine.offered = kind == Kind::kOffered;
  mine.tells_of_it = false;
  std::copy(request.pieces.begin(), request.pieces.end(), mine.pieces);
  Rendezvous& shared = exchanges_[number];
  describe(shared, Side::kSender, request.pieces);
  shared.claims.store(0, std::memory_order_relaxed);
  shared.copied.store(0, std::memory_order_relaxed);
  shared.fault.store(0, std::memory_order_relaxed);
  shared.state.store(RendezvousState::kOffered, std::memory_order_relaxed);
  return number;
}

void Outbox::progress(link::FlowSink& sink) {
  for (std::size_t i = 0; i < active_.size();) {
    if (progress_one(active_[i], sink)) {
      free_.push_back(active_[i]);
      active_[i] = active_.back();
      active_.pop_back();
    } else {
      ++i;
    }
  }
  copier_.flush();
  drain_queue(sink);
  if (busy() && slot_->attention.load(std::memory_order_acquire) == Attention::kGone) {
    check_peer(sink);
  }
}

// True when the exchange is free again.
bool Outbox::progress_one(std::uint32_t number, link::FlowSink& sink) {
  Rendezvous& shared = exchanges_[number];
  const RendezvousState state = shared.state.load(std::memory_order_acquire);
  if (state == RendezvousState::kMatched) {
    help_copying(number);
    return false;
  }
  if (pending_[number].tells_of_it) tell_of_withdrawal(number);
  if (state != RendezvousState::kDone) return false;
  report(number, ending(shared), sink);
  shared.state.store(RendezvousState::kIdle, std::memory_order_relaxed);
  return true;
}

void Outbox::help_copying(std::uint32_t number) {
  Rendezvous& shared = exchanges_[number];
  const Pending& mine = pending_[number];
  const std::uint64_t length = read_once(shared.matched_length);
  LocalRange theirs[link::kMaxPieces];
  const auto count = read_description(shared, Side::kReceiver, theirs);
  if (length > mine.length || !count) return;  // nonsense: the peer copies alone
  copier_.add_rest({&shared, &peer_, length, {mine.pieces, mine.count}, {theirs, *count}});
}

void Outbox::report(std::uint32_t number, int error, link::FlowSink& sink) {
  if (pending_[number].reported) return;
  pending_[number].reported = true;
  sink.ended(pending_[number].cookie, error, 0);
}

bool Outbox::cancel(void* cookie, link::FlowSink& sink) {
  const auto queued = std::find_if(queue_.begin(), queue_.end(), [&](const Queued& each) {
    return each.request.cookie == cookie;
  });
  if (queued != queue_.end()) {
    queue_.erase(queued);
    sink.ended(cookie, ECANCELED, 0);
    return true;
  }
  const auto active = std::find_if(active_.begin(), active_.end(), [&](std::uint32_t number) {
    return pending_[number].cookie == cookie && !pending_[number].reported;
  });
  return active != active_.end() && withdraw(*active, sink);
}

// The receiver may have read the offer: until it has read of the withdrawal, too, the exchange
// stays what it is.
bool Outbox::withdraw(std::uint32_t number, link::FlowSink& sink) {
  auto offered = RendezvousState::kOffered;
  if (!pending_[number].offered ||
      !exchanges_[number].state.compare_exchange_strong(offered, RendezvousState::kAbandoned)) {
    return false;
  }
  pending_[number].tells_of_it = true;
  report(number, ECANCELED, sink);
  tell_of_withdrawal(number);
  return true;
}

void Outbox::tell_of_withdrawal(std::uint32_t number) {
  if (!room_for_cell()) return;
  Cell& cell = next_cell();
  cell.offered = {0, number};
  publish(cell, {}, Kind::kWithdrawn, false, 0);
  pending_[number].tells_of_it = false;
}

link::PeerState Outbox::check_peer(link::FlowSink& sink) {
  const bool left = slot_->attention.load(std::memory_order_acquire) == Attention::kGone;
  const bool there = is_there();
  if (!left && there) return link::PeerState::kAlive;
  gone_ = true;
  end_all(os::Time{}, sink);  // it copies nothing any more
  if (there) return link::PeerState::kRefuses;
  return left ? link::PeerState::kLeft : link::PeerState::kDied;
}

bool Outbox::ready() const {
  for (const std::uint32_t number : active_) {
    const Rendezvous& shared = exchanges_[number];
    if (shared.state.load(std::memory_order_acquire) == RendezvousState::kDone) return true;
  }
  // What waits for room in the ring is not told when there is some.
  if (!queue_.empty() && !free_.empty()) return true;
  return slot_->attention.load(std::memory_order_acquire) == Attention::kGone;
}

void Outbox::set_asleep(bool asleep) {
  slot_->sender_asleep.store(asleep ? 1 : 0, std::memory_order_relaxed);
}

}  // namespace weft::shm
