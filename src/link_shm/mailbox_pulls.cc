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

constexpr auto kPullPatience = std::chrono::seconds(2);
constexpr unsigned kPatience = 16;  // looks until a sender that copies nothing counts as away

}  // namespace

void Mailbox::accept(link::InboxSink& sink, const link::Offer& offer,
                     std::span<const LocalRange> pieces, std::uint64_t length, void* cookie) {
  Source* source = find(offer.source);
  if (source == nullptr) return sink.received(cookie, ECONNRESET);
  Exchange& exchange = source->exchanges[offer.exchange];
  if (source->pid == 0) {
    exchange.fault.store(EPERM, std::memory_order_relaxed);
    finish(*source, exchange);
    return sink.received(cookie, ECONNRESET);
  }
  Pull pull;
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
  auto offered = ExchangeState::kOffered;
  // The sender may have taken its offer back.
  if (!count || !exchange.state.compare_exchange_strong(offered, ExchangeState::kMatched,
                                                        std::memory_order_acq_rel)) {
    return sink.received(cookie, ECONNRESET);
  }
  copier_.add_share(job(pull));
  source->helped_at = look_;  // patience begins anew
  pulls_.push_back(pull);
  if (!draining_) finish_pulls(sink);
}

CopyJob Mailbox::job(const Pull& pull) {
  return {&pull.source->exchanges[pull.exchange],
          pull.source->pid,
          pull.length,
          {pull.target, pull.target_count},
          {pull.origin, pull.origin_count}};
}

void Mailbox::finish_pulls(link::InboxSink& sink) {
  copier_.flush();
  take_over();
  for (std::size_t i = 0; i < pulls_.size();) {
    Exchange& exchange = pulls_[i].source->exchanges[pulls_[i].exchange];
    if (!all_copied(exchange, pulls_[i].length)) {
      ++i;
      continue;
    }
    Source& source = *pulls_[i].source;
    void* const cookie = pulls_[i].cookie;
    pulls_[i] = pulls_.back();
    pulls_.pop_back();
    const int error = ending(exchange);
    finish(source, exchange);
    sink.received(cookie, error);
  }
}

// Copies what a sender leaves undone that is busy elsewhere, or away.
void Mailbox::take_over() {
  ++look_;
  for (const Pull& pull : pulls_) {
    Source& source = *pull.source;
    if (!being_copied(source.exchanges[pull.exchange])) continue;
    source.helps = true;
    source.helped_at = look_;
  }
  for (const Pull& pull : pulls_) {
    Source& source = *pull.source;
    if (all_claimed(source.exchanges[pull.exchange], pull.length)) continue;
    const bool asleep = source.header->sender_asleep.load(std::memory_order_relaxed) != 0;
    if (source.helps && !asleep && look_ - source.helped_at < kPatience) continue;
    source.helps = false;
    copier_.add_rest(job(pull));
  }
  copier_.flush();
}

// The peer has ended, so nobody writes into the buffers any more.
void Mailbox::fail_pulls(const Source& source, link::InboxSink& sink) {
  for (std::size_t i = 0; i < pulls_.size();) {
    const Pull pull = pulls_[i];
    if (pull.source != &source) {
      ++i;
      continue;
    }
    pulls_[i] = pulls_.back();
    pulls_.pop_back();
    sink.received(pull.cookie, ECONNRESET);
  }
}

// Buffers of the owner must not change after it closed its endpoint: wait for peers that are in the
// middle of a chunk, unless they are dead or do not move.
void Mailbox::say_goodbye(Source& source) {
  const auto end = std::chrono::steady_clock::now() + kPullPatience;
  for (const Pull& pull : pulls_) {
    if (pull.source != &source) continue;
    Exchange& exchange = source.exchanges[pull.exchange];
    abandon_chunks(exchange, pull.length);
    while (!all_copied(exchange, pull.length) && file_->holder(kSlotLock + source.number) &&
           std::chrono::steady_clock::now() < end) {
      std::this_thread::yield();
    }
    exchange.state.store(ExchangeState::kDone, std::memory_order_release);
  }
  source.header->attention.store(Attention::kGone, std::memory_order_seq_cst);
  if (source.header->sender_asleep.load(std::memory_order_seq_cst) != 0) {
    const os::BellName bell = source.header->bell;
    bell_.ring(bell);
  }
}

Mailbox::~Mailbox() {
  if (file_->inherited()) return;
  file_->unlink();
  for (const auto& source : sources_) {
    if (source != nullptr) say_goodbye(*source);
  }
  // Whoever has the file open, in this process too, sees that nobody is here any more.
  file_->disclaim(0);
}

}  // namespace weft::shm
