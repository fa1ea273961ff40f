// SPDX-License-Identifier: BSD-2-Clause
// When does a requester send, wait, and give up?
#include "transport/requester.h"

#include <utility>

namespace weft::transport {

using work::CompletionStatus;

Requester::Requester(const Settings& settings, work::WorkSink& sink, work::LocalMemory& memory)
    : settings_(settings),
      sink_(sink),
      memory_(memory),
      window_(settings),
      in_flight_(settings.first_sent),
      packetizer_(settings_, memory, window_, queue_, in_flight_, black_hole_),
      timer_(window_.rto()),
      restarted_from_(settings.first_sent) {}

// While fail() reports the end of work, new work waits behind it.
void Requester::post(const work::Work& work, CompletionStatus refusal) {
  if (failed_ && queue_.empty()) return sink_.ended({work.cookie, CompletionStatus::kFlushed, 0});
  queue_.post(work, refusal);
}

bool Requester::withdraw(const void* cookie) { return queue_.withdraw(cookie); }

bool Requester::ready(Time now) const {
  return !failed_ && !timer_.waits(now) && packetizer_.ready();
}

std::size_t Requester::next(Time now, std::span<std::byte> out) {
  if (failed_ || timer_.waits(now)) return 0;
  timer_.end_wait(now, window_.rto());
  const std::optional<std::size_t> length = packetizer_.next(now, out);
  if (!length) {
    stop();
    return 0;
  }
  if (*length != 0) timer_.start(now, window_.rto());
  return *length;
}

// Work that cannot be sent, or whose answer cannot be taken, has a status of its own. It ends a
// connection when it is the oldest: all before it ends well.
void Requester::stop() {
  packetizer_.stop();
  const bool waits = settings_.kind != wire::Transport::kReliableDatagram &&
                     queue_.front().status == CompletionStatus::kSuccess;
  if (!waits) fail(CompletionStatus::kFlushed);
}

Time Requester::due() const {
  const bool sends = !timer_.waiting() && packetizer_.ready();
  return sends && !failed_ ? Time::min() : deadline();
}

Time Requester::deadline() const {
  return failed_ || queue_.empty() ? Time::max() : timer_.deadline();
}

void Requester::tick(Time now) {
  if (failed_ || timer_.waits(now)) return;
  timer_.end_wait(now, window_.rto());
  if (!timer_.expired(now)) return;
  const bool due = packetizer_.is_answer_due();
  if (due) settings_.stats->add(Stat::kAckTimeouts);
  if (!timer_.back_off(now, settings_)) return fail(CompletionStatus::kRetryExceeded);
  // A peer that names what it lacks is asked once before the window starts over.
  if (due && (!settings_.selective || timer_.timeouts() > 1)) window_.silent();
  const Psn acknowledged = in_flight_.acknowledged();
  if (const std::uint32_t count = in_flight_.unacknowledged(); count != 0) {
    const Psn last = in_flight_.next().after(-1);
    const QueuedWork& newest = *queue_.find(last);
    if (settings_.selective) {
      in_flight_.probe(newest.reads() ? newest.first : last);
    } else {
      in_flight_.lacks({acknowledged, count});
    }
  }
  for (QueuedWork& each : queue_) {
    if (each.waits()) break;
    if (each.lacks_answer(acknowledged)) queue_.ask_for(each, each.lacks_before(acknowledged));
  }
}

bool Requester::restart(Psn executed, std::size_t path_mtu, Time now) {
  if (failed_ || unused().before(executed)) return false;
  acknowledge(executed, now);
  settle();
  if (queue_.ask_for_atomics(executed)) return false;
  // After a refusal that this end has not heard of, the peer names the number that a message had
  // before the last restart.
  queue_.restart(executed, settings_.path_mtu, executed.before(restarted_from_));
  restarted_from_ = unused();
  settings_.path_mtu = path_mtu;
  window_.carries(path_mtu);
  in_flight_.start_over();
  packetizer_.restart();
  black_hole_.refute();
  timer_.stop();
  settle();
  return true;
}

// Work that is posted meanwhile comes behind the other work. The first error of a connection
// says why it has ended, and all work behind that is flushed.
void Requester::fail(CompletionStatus status) {
  if (failed_) return;
  failed_ = true;
  in_flight_.forget_missing();
  const bool connection = settings_.kind != wire::Transport::kReliableDatagram;
  bool explained = false;
  while (!queue_.empty()) {
    QueuedWork& oldest = queue_.front();
    const bool ends = !oldest.settled(in_flight_.acknowledged()) && !oldest.resync;
    if (ends && (explained || oldest.status == CompletionStatus::kSuccess)) {
      oldest.status = std::exchange(status, CompletionStatus::kFlushed);
    }
    black_hole_.refute();
    if (const auto end = queue_.pop()) {
      explained = explained || (connection && end->status != CompletionStatus::kSuccess);
      sink_.ended(*end);
    }
  }
}

}  // namespace weft::transport
