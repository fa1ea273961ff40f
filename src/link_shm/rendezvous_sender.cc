// SPDX-License-Identifier: BSD-2-Clause
// How does a sender see its large and its acknowledged messages to their end?
#include "link_shm/rendezvous_sender.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <thread>

namespace weft::shm {

using link::SendRequest;

// Rendezvous get memory a block at a time, when all others are in use.
bool RendezvousSender::obtain() {
  if (!free_.empty()) return true;
  const auto first = static_cast<std::uint32_t>(pending_.size());
  const Geometry& geometry = slot_.geometry();
  if (first == geometry.rendezvous_records) return false;
  if (!slot_.memory().back_rendezvous_block(first)) return false;
  if (copier_ == nullptr) copier_ = std::make_unique<ChunkCopier>(Side::kSender);
  records_ = slot_.memory().rendezvous_records();
  pending_.resize(first + geometry.rendezvous_block());
  for (std::uint32_t i = geometry.rendezvous_block(); i-- > 0;) free_.push_back(first + i);
  return true;
}

std::uint32_t RendezvousSender::start(const SendRequest& request, CellKind kind) {
  const std::uint32_t number = free_.back();
  free_.pop_back();
  active_.push_back(number);
  Pending& mine = pending_[number];
  mine.cookie = request.cookie;
  mine.length = request.length;
  mine.count = static_cast<std::uint32_t>(request.sges.size());
  mine.reported = false;
  mine.offered = kind == CellKind::kOffered;
  mine.reports_withdrawal = false;
  std::copy(request.sges.begin(), request.sges.end(), mine.sges);
  Rendezvous& shared = records_[number];
  describe(shared, Side::kSender, request.sges);
  shared.claims.store(0, std::memory_order_relaxed);
  shared.copied.store(0, std::memory_order_relaxed);
  shared.fault.store(0, std::memory_order_relaxed);
  shared.state.store(RendezvousState::kOffered, std::memory_order_relaxed);
  return number;
}

void RendezvousSender::progress(RingWriter& ring, link::FlowSink& sink) {
  for (std::size_t i = 0; i < active_.size();) {
    if (progress_one(active_[i], ring, sink)) {
      free_.push_back(active_[i]);
      active_[i] = active_.back();
      active_.pop_back();
    } else {
      ++i;
    }
  }
  if (copier_ != nullptr) copier_->flush();
}

// True when the rendezvous is free again.
bool RendezvousSender::progress_one(std::uint32_t number, RingWriter& ring, link::FlowSink& sink) {
  Rendezvous& shared = records_[number];
  const RendezvousState state = shared.state.load(std::memory_order_acquire);
  if (state == RendezvousState::kMatched) {
    help_copying(number);
    return false;
  }
  if (pending_[number].reports_withdrawal) report_withdrawal(number, ring);
  if (state != RendezvousState::kDone) return false;
  report(number, ending(shared), sink);
  shared.state.store(RendezvousState::kIdle, std::memory_order_relaxed);
  return true;
}

void RendezvousSender::help_copying(std::uint32_t number) {
  Rendezvous& shared = records_[number];
  const Pending& mine = pending_[number];
  const std::uint64_t length = read_once(shared.matched_length);
  LocalRange theirs[link::kMaxLinkSges];
  const auto count = read_description(shared, Side::kReceiver, theirs);
  if (length > mine.length || !count) return;  // nonsense: the peer copies alone
  copier_->add_rest({&shared, &slot_.owner(), length, {mine.sges, mine.count}, {theirs, *count}});
}

void RendezvousSender::report(std::uint32_t number, int error, link::FlowSink& sink) {
  if (pending_[number].reported) return;
  pending_[number].reported = true;
  sink.ended(pending_[number].cookie, error, 0);
}

bool RendezvousSender::any_done() const {
  return std::any_of(active_.begin(), active_.end(), [this](std::uint32_t number) {
    return records_[number].state.load(std::memory_order_acquire) == RendezvousState::kDone;
  });
}

// The receiver may have read the offer: until it has read of the withdrawal, too, the rendezvous
// stays what it is.
bool RendezvousSender::cancel(void* cookie, RingWriter& ring, link::FlowSink& sink) {
  const auto active = std::find_if(active_.begin(), active_.end(), [&](std::uint32_t number) {
    return pending_[number].cookie == cookie && !pending_[number].reported;
  });
  if (active == active_.end()) return false;
  const std::uint32_t number = *active;
  auto offered = RendezvousState::kOffered;
  if (!pending_[number].offered ||
      !records_[number].state.compare_exchange_strong(offered, RendezvousState::kAbandoned)) {
    return false;
  }
  pending_[number].reports_withdrawal = true;
  report(number, ECANCELED, sink);
  report_withdrawal(number, ring);
  return true;
}

void RendezvousSender::report_withdrawal(std::uint32_t number, RingWriter& ring) {
  if (!ring.room_for(1)) return;
  ring.next_cell().offered = {0, number, 0};
  ring.publish({}, CellKind::kWithdrawn);
  pending_[number].reports_withdrawal = false;
}

// The receiver may be copying from this process: the program must not get the buffers back before,
// unless the receiver learns that the message has failed.
void RendezvousSender::part_from(std::uint32_t number, os::Time end) {
  Rendezvous& shared = records_[number];
  auto state = RendezvousState::kOffered;
  if (shared.state.compare_exchange_strong(state, RendezvousState::kIdle)) return;
  while (shared.state.load(std::memory_order_acquire) == RendezvousState::kMatched &&
         slot_.file().holder(0) && std::chrono::steady_clock::now() < end) {
    help_copying(number);
    copier_->flush();
    if (all_copied(shared, std::min(read_once(shared.matched_length), pending_[number].length)))
      return;
    std::this_thread::yield();
  }
  state = RendezvousState::kMatched;
  shared.state.compare_exchange_strong(state, RendezvousState::kAbandoned);
}

void RendezvousSender::drain(os::Time end) {
  for (const std::uint32_t number : active_) part_from(number, end);
}

void RendezvousSender::end_all(os::Time end, link::FlowSink& sink) {
  for (const std::uint32_t number : active_) {
    part_from(number, end);
    const Rendezvous& shared = records_[number];
    const bool over = shared.state.load(std::memory_order_acquire) == RendezvousState::kDone;
    report(number, over ? ending(shared) : ECONNRESET, sink);
  }
  active_.clear();
}

}  // namespace weft::shm
