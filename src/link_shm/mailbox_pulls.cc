// SPDX-License-Identifier: BSD-2-Clause
// How does a mailbox take large messages, and how does it part from those under way?
#include <algorithm>
#include <chrono>
#include <cstring>
#include <thread>

#include "link_shm/mailbox.h"
#include "link_shm/paired_copy.h"

namespace weft::shm {
namespace {

constexpr auto kClosePatience = std::chrono::seconds(2);
constexpr unsigned kPatience = 16;  // looks until a sender that copies nothing counts as away

}  // namespace

bool Mailbox::accept(link::InboxSink& sink, const link::Offer& offer,
                     std::span<const LocalRange> pieces, std::uint64_t length, void* cookie) {
  const auto fails = [&] {
    sink.received(cookie, ECONNRESET);
    return true;
  };
  Source* source = find(offer.source);
  if (source == nullptr) return fails();
  Rendezvous& exchange = source->exchanges[offer.exchange];
  if (source->process.pid() == 0) {
    exchange.fault.store(EPERM, std::memory_order_relaxed);
    finish(*source, exchange, RendezvousState::kOffered);
    return fails();
  }
  RendezvousCopy pull;
  pull.source = source;
  pull.exchange = offer.exchange;
  pull.length = length;
  pull.cookie = cookie;
  pull.target_count = pieces.size();
  std::copy(pieces.begin(), pieces.end(), pull.target);
  const auto count = read_description(exchange, Side::kSender, pull.origin);
  pull.origin_count = count.value_or(0);
  describe(exchange, Side::kReceiver, pieces);
  exchange.matched_length = length;
  claim_share(exchange, length);
  auto state = RendezvousState::kOffered;
  // The sender may have withdrawn its offer, or be leaving.
  if (!count || !exchange.state.compare_exchange_strong(state, RendezvousState::kMatched,
                                                        std::memory_order_acq_rel)) {
    return state != RendezvousState::kAbandoned && fails();
  }
  copier_.add_share(job(pull));
  source->helped_at = look_;  // patience begins anew
  pulls_.push_back(pull);
  if (!draining_) finish_pulls(sink);
  return true;
}

CopyJob Mailbox::job(const RendezvousCopy& pull) {
  return {&pull.source->exchanges[pull.exchange],
          &pull.source->process,
          pull.length,
          {pull.target, pull.target_count},
          {pull.origin, pull.origin_count}};
}

void Mailbox::finish_pulls(link::InboxSink& sink) {
  copier_.flush();
  take_over();
  for (std::size_t i = 0; i < pulls_.size();) {
    Rendezvous& exchange = pulls_[i].source->exchanges[pulls_[i].exchange];
    if (!all_copied(exchange, pulls_[i].length)) {
      ++i;
      continue;
    }
    const RendezvousCopy pull = take(i);
    int error = pull.error != 0 ? pull.error : ending(exchange);
    if (!read_from_sender(*pull.source)) error = ECONNRESET;
    const bool finished = finish(*pull.source, exchange, RendezvousState::kMatched);
    sink.received(pull.cookie, finished ? error : ECONNRESET);
  }
}

// False if the sender's id may have been another process's when it was read. A sender that left in
// good order was there until all was copied that it did not abandon.
bool Mailbox::read_from_sender(Source& source) {
  return source.process.reads_confirmed() ||
         source.header->state.load(std::memory_order_acquire) == SlotState::kClosed;
}

Mailbox::RendezvousCopy Mailbox::take(std::size_t i) {
  const RendezvousCopy pull = pulls_[i];
  pulls_[i] = pulls_.back();
  pulls_.pop_back();
  return pull;
}

// Copies what a sender leaves undone that is busy elsewhere, or away.
void Mailbox::take_over() {
  ++look_;
  for (const RendezvousCopy& pull : pulls_) {
    Source& source = *pull.source;
    if (!being_copied(source.exchanges[pull.exchange])) continue;
    source.helps = true;
    source.helped_at = look_;
  }
  for (const RendezvousCopy& pull : pulls_) {
    Source& source = *pull.source;
    if (all_claimed(source.exchanges[pull.exchange], pull.length)) continue;
    const bool asleep = source.header->sender_asleep.load(std::memory_order_relaxed) != 0;
    if (source.helps && !asleep && look_ - source.helped_at < kPatience) continue;
    source.helps = false;
    copier_.add_rest(job(pull));
  }
  copier_.flush();
}

// The sender has ended, or left after its last copy: nothing writes into the buffers any more.
void Mailbox::fail_pulls(const Source& source, link::InboxSink& sink) {
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
// stopped there: finish_pulls() reports the messages when that has ended.
void Mailbox::revoke(RendezvousCopy& pull, int error) {
  if (pull.error != 0) return;
  pull.error = error;
  abandon_chunks(pull.source->exchanges[pull.exchange], pull.length);
}

bool Mailbox::being_written(const RendezvousCopy& pull) {
  return !all_copied(pull.source->exchanges[pull.exchange], pull.length) &&
         pull.source->process.holds_lock();
}

bool Mailbox::reclaim_buffers() {
  if (file_->inherited()) return true;
  copier_.flush();
  for (RendezvousCopy& pull : pulls_) revoke(pull, ECANCELED);
  return std::none_of(pulls_.begin(), pulls_.end(),
                      [](const RendezvousCopy& pull) { return being_written(pull); });
}

void Mailbox::disconnect_source(Source& source) {
  source.header->attention.store(Attention::kGone, std::memory_order_seq_cst);
  if (source.header->sender_asleep.load(std::memory_order_seq_cst) != 0) {
    const os::WakerName waker = source.header->waker;
    waker_.ring(waker);
  }
}

Mailbox::~Mailbox() {
  if (file_->inherited()) return;
  file_->unlink();
  const auto end = std::chrono::steady_clock::now() + kClosePatience;
  while (!reclaim_buffers() && std::chrono::steady_clock::now() < end) std::this_thread::yield();
  for (const RendezvousCopy& pull : pulls_) {
    finish(*pull.source, pull.source->exchanges[pull.exchange], RendezvousState::kMatched);
  }
  for (const auto& source : sources_) {
    if (source != nullptr) disconnect_source(*source);
  }
  // Every user of the file, in this process too, sees that the owner has gone.
  file_->disclaim(0);
}

}  // namespace weft::shm
