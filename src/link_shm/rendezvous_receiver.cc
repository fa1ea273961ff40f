// SPDX-License-Identifier: BSD-2-Clause
// How does a mailbox take large messages, and how does it part from those under way?
#include "link_shm/rendezvous_receiver.h"

#include <algorithm>
#include <cerrno>

namespace weft::shm {
namespace {

constexpr unsigned kIdleLooks = 16;  // looks until a sender that copies nothing counts as away

}  // namespace

bool RendezvousReceiver::finish(Source& source, std::uint32_t rendezvous_id, RendezvousState from) {
  if (!source.memory.rendezvous_records()[rendezvous_id].state.compare_exchange_strong(
          from, RendezvousState::kDone)) {
    return false;
  }
  source.wake(waker_);
  return true;
}

bool RendezvousReceiver::accept(Source& source, link::InboxSink& sink, std::uint32_t rendezvous_id,
                                std::span<const LocalRange> sges, std::uint64_t length,
                                void* cookie) {
  const auto fails = [&] {
    sink.received(cookie, ECONNRESET);
    return true;
  };
  RendezvousCopy rendezvous_copy;
  rendezvous_copy.source = &source;
  rendezvous_copy.rendezvous_id = rendezvous_id;
  rendezvous_copy.length = length;
  rendezvous_copy.cookie = cookie;
  rendezvous_copy.target_count = sges.size();
  std::copy(sges.begin(), sges.end(), rendezvous_copy.target);
  Rendezvous& shared = rendezvous_copy.shared();
  if (source.process.pid() == 0) {
    shared.fault.store(EPERM, std::memory_order_relaxed);
    finish(source, rendezvous_id, RendezvousState::kOffered);
    return fails();
  }
  const auto count = read_description(shared, Side::kSender, rendezvous_copy.origin);
  rendezvous_copy.origin_count = count.value_or(0);
  describe(shared, Side::kReceiver, sges);
  shared.matched_length = length;
  claim_share(shared, length);
  auto state = RendezvousState::kOffered;
  // The sender may have withdrawn its offer, or be leaving.
  if (!count || !shared.state.compare_exchange_strong(state, RendezvousState::kMatched,
                                                      std::memory_order_acq_rel)) {
    return state != RendezvousState::kAbandoned && fails();
  }
  copier_.add_share(rendezvous_copy.job());
  source.helped_at = look_;  // patience begins anew
  copies_.push_back(rendezvous_copy);
  if (!held_) progress(sink);
  return true;
}

CopyJob RendezvousReceiver::RendezvousCopy::job() const {
  return {&shared(), &source->process, length, {target, target_count}, {origin, origin_count}};
}

void RendezvousReceiver::progress(link::InboxSink& sink) {
  flush();
  take_over();
  for (std::size_t i = 0; i < copies_.size();) {
    if (!all_copied(copies_[i].shared(), copies_[i].length)) {
      ++i;
      continue;
    }
    const RendezvousCopy rendezvous_copy = take(i);
    int error =
        rendezvous_copy.error != 0 ? rendezvous_copy.error : ending(rendezvous_copy.shared());
    if (!read_from_sender(*rendezvous_copy.source)) error = ECONNRESET;
    const bool finished =
        finish(*rendezvous_copy.source, rendezvous_copy.rendezvous_id, RendezvousState::kMatched);
    sink.received(rendezvous_copy.cookie, finished ? error : ECONNRESET);
  }
}

// False if the sender's id may have been another process's when it was read. A sender that left in
// good order was there until all was copied that it did not abandon.
bool RendezvousReceiver::read_from_sender(Source& source) {
  return source.process.reads_confirmed() ||
         source.header->state.load(std::memory_order_acquire) == SlotState::kClosed;
}

RendezvousReceiver::RendezvousCopy RendezvousReceiver::take(std::size_t i) {
  const RendezvousCopy rendezvous_copy = copies_[i];
  copies_[i] = copies_.back();
  copies_.pop_back();
  return rendezvous_copy;
}

// Copies what a sender leaves undone that is busy elsewhere, or away.
void RendezvousReceiver::take_over() {
  ++look_;
  for (const RendezvousCopy& rendezvous_copy : copies_) {
    if (!being_copied(rendezvous_copy.shared())) continue;
    rendezvous_copy.source->helps = true;
    rendezvous_copy.source->helped_at = look_;
  }
  for (const RendezvousCopy& rendezvous_copy : copies_) {
    Source& source = *rendezvous_copy.source;
    if (all_claimed(rendezvous_copy.shared(), rendezvous_copy.length)) continue;
    const bool asleep = source.header->sender_asleep.load(std::memory_order_relaxed) != 0;
    if (source.helps && !asleep && look_ - source.helped_at < kIdleLooks) continue;
    source.helps = false;
    copier_.add_rest(rendezvous_copy.job());
  }
  flush();
}

// The sender has ended, or left after its last copy: nothing writes into the buffers any more.
void RendezvousReceiver::fail(const Source& source, link::InboxSink& sink) {
  for (std::size_t i = 0; i < copies_.size();) {
    if (copies_[i].source != &source) {
      ++i;
      continue;
    }
    const RendezvousCopy rendezvous_copy = take(i);
    sink.received(rendezvous_copy.cookie,
                  rendezvous_copy.error != 0 ? rendezvous_copy.error : ECONNRESET);
  }
}

// A living sender may be in the middle of copying chunks that it claimed, for as long as it is
// stopped there: progress() reports the messages when that has ended.
void RendezvousReceiver::RendezvousCopy::revoke(int why) {
  if (error != 0) return;
  error = why;
  abandon_chunks(shared(), length);
}

void RendezvousReceiver::revoke(const Source& source, int error) {
  for (RendezvousCopy& rendezvous_copy : copies_) {
    if (rendezvous_copy.source == &source) rendezvous_copy.revoke(error);
  }
}

bool RendezvousReceiver::RendezvousCopy::being_written() const {
  return !all_copied(shared(), length) && source->process.holds_lock();
}

bool RendezvousReceiver::reclaim_buffers() {
  flush();
  for (RendezvousCopy& rendezvous_copy : copies_) rendezvous_copy.revoke(ECANCELED);
  return std::none_of(copies_.begin(), copies_.end(), [](const RendezvousCopy& rendezvous_copy) {
    return rendezvous_copy.being_written();
  });
}

void RendezvousReceiver::finish_all() {
  for (const RendezvousCopy& rendezvous_copy : copies_) {
    finish(*rendezvous_copy.source, rendezvous_copy.rendezvous_id, RendezvousState::kMatched);
  }
}

}  // namespace weft::shm
