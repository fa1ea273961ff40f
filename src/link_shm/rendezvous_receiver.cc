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
  if (!source.rendezvous_records[rendezvous_id].state.compare_exchange_strong(
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
  RendezvousCopy pull;
  pull.source = &source;
  pull.rendezvous_id = rendezvous_id;
  pull.length = length;
  pull.cookie = cookie;
  pull.target_count = sges.size();
  std::copy(sges.begin(), sges.end(), pull.target);
  Rendezvous& shared = pull.shared();
  if (source.process.pid() == 0) {
    shared.fault.store(EPERM, std::memory_order_relaxed);
    finish(source, rendezvous_id, RendezvousState::kOffered);
    return fails();
  }
  const auto count = read_description(shared, Side::kSender, pull.origin);
  pull.origin_count = count.value_or(0);
  describe(shared, Side::kReceiver, sges);
  shared.matched_length = length;
  claim_share(shared, length);
  auto state = RendezvousState::kOffered;
  // The sender may have withdrawn its offer, or be leaving.
  if (!count || !shared.state.compare_exchange_strong(state, RendezvousState::kMatched,
                                                      std::memory_order_acq_rel)) {
    return state != RendezvousState::kAbandoned && fails();
  }
  copier_.add_share(pull.job());
  source.helped_at = look_;  // patience begins anew
  pulls_.push_back(pull);
  if (!held_) progress(sink);
  return true;
}

CopyJob RendezvousReceiver::RendezvousCopy::job() const {
  return {&shared(), &source->process, length, {target, target_count}, {origin, origin_count}};
}

void RendezvousReceiver::progress(link::InboxSink& sink) {
  flush();
  take_over();
  for (std::size_t i = 0; i < pulls_.size();) {
    if (!all_copied(pulls_[i].shared(), pulls_[i].length)) {
      ++i;
      continue;
    }
    const RendezvousCopy pull = take(i);
    int error = pull.error != 0 ? pull.error : ending(pull.shared());
    if (!read_from_sender(*pull.source)) error = ECONNRESET;
    const bool finished = finish(*pull.source, pull.rendezvous_id, RendezvousState::kMatched);
    sink.received(pull.cookie, finished ? error : ECONNRESET);
  }
}

// False if the sender's id may have been another process's when it was read. A sender that left in
// good order was there until all was copied that it did not abandon.
bool RendezvousReceiver::read_from_sender(Source& source) {
  return source.process.reads_confirmed() ||
         source.header->state.load(std::memory_order_acquire) == SlotState::kClosed;
}

RendezvousReceiver::RendezvousCopy RendezvousReceiver::take(std::size_t i) {
  const RendezvousCopy pull = pulls_[i];
  pulls_[i] = pulls_.back();
  pulls_.pop_back();
  return pull;
}

// Copies what a sender leaves undone that is busy elsewhere, or away.
void RendezvousReceiver::take_over() {
  ++look_;
  for (const RendezvousCopy& pull : pulls_) {
    if (!being_copied(pull.shared())) continue;
    pull.source->helps = true;
    pull.source->helped_at = look_;
  }
  for (const RendezvousCopy& pull : pulls_) {
    Source& source = *pull.source;
    if (all_claimed(pull.shared(), pull.length)) continue;
    const bool asleep = source.header->sender_asleep.load(std::memory_order_relaxed) != 0;
    if (source.helps && !asleep && look_ - source.helped_at < kIdleLooks) continue;
    source.helps = false;
    copier_.add_rest(pull.job());
  }
  flush();
}

// The sender has ended, or left after its last copy: nothing writes into the buffers any more.
void RendezvousReceiver::fail(const Source& source, link::InboxSink& sink) {
  for (std::size_t i = 0; i < pulls_.size();) {
    if (pulls_[i].source != &source) {
      ++i;
      continue;
    }
    const RendezvousCopy pull = take(i);
    sink.received(pull.cookie, pull.error != 0 ? pull.error : ECONNRESET);
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
  for (RendezvousCopy& pull : pulls_) {
    if (pull.source == &source) pull.revoke(error);
  }
}

bool RendezvousReceiver::RendezvousCopy::being_written() const {
  return !all_copied(shared(), length) && source->process.holds_lock();
}

bool RendezvousReceiver::reclaim_buffers() {
  flush();
  for (RendezvousCopy& pull : pulls_) pull.revoke(ECANCELED);
  return std::none_of(pulls_.begin(), pulls_.end(),
                      [](const RendezvousCopy& pull) { return pull.being_written(); });
}

void RendezvousReceiver::finish_all() {
  for (const RendezvousCopy& pull : pulls_) {
    finish(*pull.source, pull.rendezvous_id, RendezvousState::kMatched);
  }
}

}  // namespace weft::shm
