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

constexpr auto kPartingPatience = std::chrono::seconds(2);

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
  LocalRange theirs[link::kMaxPieces];
  std::memcpy(theirs, exchange.source, sizeof theirs);
  const std::uint32_t count = read_once(exchange.source_count);
  auto offered = ExchangeState::kOffered;
  std::copy(pieces.begin(), pieces.end(), exchange.target);
  exchange.target_count = static_cast<std::uint32_t>(pieces.size());
  exchange.matched_length = length;
  // The sender may have taken its offer back.
  if (count > link::kMaxPieces ||
      !exchange.state.compare_exchange_strong(offered, ExchangeState::kMatched,
                                              std::memory_order_acq_rel)) {
    return sink.received(cookie, ECONNRESET);
  }
  copy_chunks({&exchange, Side::kReceiver, source->pid, length, pieces, {theirs, count}});
  pulls_.push_back({source, offer.exchange, length, cookie});
  finish_pulls(sink);
}

void Mailbox::finish_pulls(link::InboxSink& sink) {
  for (std::size_t i = 0; i < pulls_.size();) {
    const Pull pull = pulls_[i];
    Exchange& exchange = pull.source->exchanges[pull.exchange];
    if (!all_copied(exchange, pull.length)) {
      ++i;
      continue;
    }
    pulls_[i] = pulls_.back();
    pulls_.pop_back();
    const int error = ending(exchange);
    finish(*pull.source, exchange);
    sink.received(pull.cookie, error);
  }
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
  const auto end = std::chrono::steady_clock::now() + kPartingPatience;
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
