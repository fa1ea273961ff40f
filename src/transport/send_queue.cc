// SPDX-License-Identifier: BSD-2-Clause
// Which work requests of a reliable flow have not ended, and how far is each?
#include "transport/send_queue.h"

#include "packets.h"

namespace weft::transport {

using work::Ended;

// Most often the first.
QueuedWork* SendQueue::find(Psn psn) {
  if (!queue_.empty()) {
    QueuedWork& first = queue_.front();
    if (first.begun() && first.range().has(psn)) return first.ended ? nullptr : &first;
  }
  const bool sending = has_unsent() && queue_[unsent_].begun();
  const auto begun = queue_.begin() + static_cast<std::ptrdiff_t>(unsent_ + (sending ? 1 : 0));
  const auto found = std::partition_point(
      queue_.begin(), begun, [psn](const QueuedWork& each) { return !psn.before(each.end()); });
  return found != begun && found->range().has(psn) && !found->ended ? &*found : nullptr;
}

QueuedWork* SendQueue::find_sent(const void* cookie) {
  const auto found = std::find_if(queue_.begin(), queue_.end(), [&](const QueuedWork& each) {
    return !each.begun() || (each.work.cookie == cookie && !each.resync);
  });
  const bool sent = found != queue_.end() && found->begun() && found->cut == found->packets;
  return sent ? &*found : nullptr;
}

std::size_t SendQueue::oldest_bytes(Psn acknowledged, std::size_t path_mtu) const {
  if (!has_begun()) return 0;
  const QueuedWork& oldest = queue_.front();
  if (oldest.lacks_answer(acknowledged)) return oldest.payload_of(oldest.first_lacking(), path_mtu);
  const std::int32_t index = std::max(acknowledged.since(oldest.first), 0);
  return oldest.payload_of(static_cast<std::uint32_t>(index), path_mtu);
}

void SendQueue::post(const work::Work& work, work::CompletionStatus status) {
  QueuedWork& queued = queue_.emplace_back();
  queued.work = work;
  queued.sge_count = std::min(work.sges.size(), work::kMaxWorkSges);
  std::copy_n(work.sges.begin(), queued.sge_count, queued.sges.begin());
  queued.work.sges = {};
  queued.status = status;
}

bool SendQueue::withdraw(const void* cookie) {
  const auto first = queue_.begin() + static_cast<std::ptrdiff_t>(unsent_);
  const auto unsent = std::find_if(first, queue_.end(), [&](const QueuedWork& each) {
    return each.work.cookie == cookie && each.work.kind == work::WorkKind::kSend && each.waits() &&
           !each.resync && !each.continues;
  });
  if (unsent == queue_.end()) return false;
  queue_.erase(unsent);
  return true;
}

void SendQueue::split_unsent(std::uint64_t part) {
  if (!queue_[unsent_].reads() || queue_[unsent_].work.length <= part) return;
  QueuedWork rest = queue_[unsent_];
  queue_[unsent_].work.length = part;
  queue_[unsent_].whole = false;
  rest.work.length -= part;
  rest.work.address += part;
  rest.offset += part;
  queue_.insert(queue_.begin() + static_cast<std::ptrdiff_t>(unsent_ + 1), rest);
}

void SendQueue::begin_unsent(Psn next, std::uint64_t part, std::size_t path_mtu) {
  if (queue_[unsent_].begun()) return;
  split_unsent(part);
  QueuedWork& begins = queue_[unsent_];
  const bool atomic = begins.asks() && !begins.reads();
  begins.first = next;
  begins.packets = begins.resync || atomic ? 1 : packets_for(begins.work.length, path_mtu);
  if (!begins.asks()) return;
  ++awaited_;
  ++remembered_;
}

void SendQueue::sent(std::uint32_t count) {
  QueuedWork& sending = queue_[unsent_];
  sending.cut += count;
  if (sending.cut != sending.packets) return;
  ++unsent_;
  skip_ended(sending.end());
}

// Work that the peer had executed before restart(): it uses no numbers.
void SendQueue::skip_ended(Psn next) {
  for (; has_unsent() && queue_[unsent_].ended; ++unsent_) queue_[unsent_].first = next;
}

std::optional<Ended> SendQueue::pop() {
  const QueuedWork& oldest = queue_.front();
  const Ended end{oldest.work.cookie, oldest.status, oldest.detail};
  const bool whole = oldest.whole;
  const bool resync = oldest.resync;
  if (oldest.begun() && oldest.asks()) --remembered_;
  queue_.pop_front();
  if (unsent_ != 0) --unsent_;
  if (resync) return std::nullopt;
  if (whole) return end;
  if (end.status == work::CompletionStatus::kSuccess) return std::nullopt;
  QueuedWork& rest = queue_.front();
  rest.status = end.status;
  rest.detail = end.detail;
  if (!rest.begun()) rest.ended = true;
  return std::nullopt;
}

std::size_t SendQueue::index_of(const QueuedWork& work) const {
  const auto place = std::find_if(queue_.begin(), queue_.end(),
                                  [&](const QueuedWork& each) { return &each == &work; });
  return static_cast<std::size_t>(place - queue_.begin());
}

void SendQueue::restart_from(QueuedWork& given_up) {
  const std::size_t place = index_of(given_up);
  begin_anew(place);
  insert_resync(place);
}

void SendQueue::restart_behind(QueuedWork& refused) {
  const std::size_t after = index_of(refused) + 1;
  refused.packets = refused.cut;  // others get the numbers of the rest
  begin_anew(after);
  while (!queue_[after - 1].whole) {  // no further parts of that read are asked for
    queue_[after - 1].whole = queue_[after].whole;
    queue_.erase(queue_.begin() + static_cast<std::ptrdiff_t>(after));
  }
  insert_resync(after);
}

// The work from that place on.
void SendQueue::begin_anew(std::size_t place) {
  for (std::size_t i = place; i < queue_.size() && !queue_[i].waits(); ++i) {
    QueuedWork& again = queue_[i];
    if (again.asks() && !again.ended) {
      --remembered_;
      --awaited_;
    }
    again.packets = again.cut = 0;
    again.begin_anew();
  }
}

void SendQueue::insert_resync(std::size_t place) {
  QueuedWork resync;
  resync.resync = true;
  queue_.insert(queue_.begin() + static_cast<std::ptrdiff_t>(place), resync);
  unsent_ = place;
}

void SendQueue::restart(Psn executed, std::size_t path_mtu, bool broken_off) {
  for (QueuedWork& each : queue_) {
    if (broken_off) each.begin_anew();
    const bool all = each.begun() && !each.asks() && !executed.before(each.end());
    each.ended = each.ended || each.resync || all;
    if (each.begun() && !each.asks() && !each.ended && each.first.before(executed)) {
      const auto bytes = static_cast<std::uint64_t>(executed.since(each.first)) * path_mtu;
      each.offset += bytes;
      each.work.length -= bytes;
      each.continues = true;
    }
    each.packets = each.cut = 0;
    each.there = each.again = {};
  }
  unsent_ = asking_again_ = awaited_ = remembered_ = 0;
  skip_ended(executed);
}

bool SendQueue::ask_for_atomics(Psn executed) {
  bool any = false;
  for (QueuedWork& each : queue_) {
    if (each.reads() || !each.lacks_answer(executed)) continue;
    ask_for(each, AnswerSet(0, 1));
    any = true;
  }
  return any;
}

void SendQueue::ask_for(QueuedWork& work, const AnswerSet& answers) {
  if (answers.empty()) return;
  if (work.again.empty()) ++asking_again_;
  work.again.add(answers);
}

// Answers come in the order of requests, so each is asked for again once in a round trip only.
bool SendQueue::ask_for_lost(Psn end, Time now, Duration round_trip) {
  if (awaited_ == 0) return false;
  bool any = false;
  for (QueuedWork& each : queue_) {
    if (each.waits() || !each.first.before(end)) break;
    if (!each.asks() || each.ended || now - each.asked < round_trip) continue;
    const AnswerSet lost = each.lacks_before(end).without(each.again);
    any = any || !lost.empty();
    ask_for(each, lost);
  }
  return any;
}

QueuedWork& SendQueue::first_asking_again() {
  return *std::find_if(queue_.begin(), queue_.end(),
                       [](const QueuedWork& each) { return !each.again.empty(); });
}

void SendQueue::asked_for(QueuedWork& work, const AnswerSet& answers) {
  if (work.again.empty()) return;
  work.again = work.again.without(answers);
  if (work.again.empty()) --asking_again_;
}

void SendQueue::answered(QueuedWork& work) {
  work.ended = true;
  --awaited_;
  if (!work.again.empty()) --asking_again_;
  work.again = {};
}

}  // namespace weft::transport
