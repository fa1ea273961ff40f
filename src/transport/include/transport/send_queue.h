// SPDX-License-Identifier: BSD-2-Clause
// Which work requests of a reliable flow have not ended, and how far is each?
#pragma once

#include <algorithm>
#include <array>
#include <boost/container/deque.hpp>
#include <optional>

#include "transport/answer_set.h"
#include "transport/psn_ranges.h"
#include "transport/settings.h"
#include "work/work.h"

namespace weft::transport {

// A work request, or a part of a long read, or a RESYNC, from its post to its end. Packet numbers
// of requests and of the answers to a read count from 0 within it.
struct QueuedWork {
  work::Work work;  // its list of SGEs lies in `sges`
  std::array<work::Segment, work::kMaxWorkSges> sges{};
  std::size_t sge_count = 0;
  std::uint64_t offset = 0;  // where in the SGEs it begins: a part of a read, or `continues`
  bool whole = true;         // the last part: its end is reported
  bool continues = false;    // a message that has begun with other numbers, before `offset`
  bool resync = false;       // a RESYNC request, which carries no work
  Psn first;
  std::uint32_t packets = 0;  // 0 until it has begun
  std::uint32_t cut = 0;      // how many of them were sent
  AnswerSet there;            // answers of a read that are in place
  AnswerSet again;            // answers that are to be requested once more
  Time asked{};               // when an answer was requested last
  bool ended = false;
  work::CompletionStatus status = work::CompletionStatus::kSuccess;
  std::uint8_t detail = 0;

  std::span<const work::Segment> buffers() const { return {sges.data(), sge_count}; }
  bool begun() const { return packets != 0; }
  // It waits for its turn.
  bool waits() const { return !begun() && !ended; }
  bool reads() const { return work.kind == work::WorkKind::kRead && !resync; }
  // Its answer is a value, not only an acknowledgement.
  bool asks() const { return work.kind >= work::WorkKind::kRead && !resync; }
  PsnRange range() const { return {first, packets}; }
  Psn end() const { return range().end(); }
  // Number of the first answer that is not in place; `packets` when all are.
  std::uint32_t first_lacking() const { return there.gap_from(0); }
  // Answers before `psn` that are not in place.
  AnswerSet lacks_before(Psn psn) const {
    const std::int32_t count = std::max(psn.since(first), 0);
    return AnswerSet(0, std::min(packets, static_cast<std::uint32_t>(count))).without(there);
  }
  // Bytes of the payload of packet, or answer, number `index`.
  std::size_t payload_of(std::uint32_t index, std::size_t path_mtu) const {
    const std::uint64_t begin = std::uint64_t{index} * path_mtu;
    if (begin >= work.length) return 0;
    return std::min<std::uint64_t>(path_mtu, work.length - begin);
  }
  // The peer acknowledged the request, as all before `acknowledged`, and its value has not arrived.
  bool lacks_answer(Psn acknowledged) const {
    return asks() && !ended && begun() && first.before(acknowledged);
  }
  // The peer has broken the message off, and executes it from its first byte.
  void begin_anew() {
    if (!continues) return;
    work.length += offset;
    offset = 0;
    continues = false;
  }
  // Nothing of it is still to be sent or to arrive.
  bool settled(Psn acknowledged) const {
    return ended || (begun() && !asks() && cut == packets && !acknowledged.before(end()));
  }
};

// The work requests of a requester in the order in which they were posted: those that have begun,
// then the others. It counts the answers with values that are awaited. One thread at a time.
class SendQueue {
 public:
  // Blocks of two: the standard one would have one element in each, and ask for memory every time;
  // larger ones, of which every flow has had one, leave holes between flows.
  using Queue =
      boost::container::deque<QueuedWork, void,
                              boost::container::deque_options_t<boost::container::block_size<2>>>;

  bool empty() const { return queue_.empty(); }
  // Not when empty().
  QueuedWork& front() { return queue_.front(); }
  const QueuedWork& front() const { return queue_.front(); }
  Queue::iterator begin() { return queue_.begin(); }
  Queue::iterator end() { return queue_.end(); }
  // True when one has begun, and not ended.
  bool has_begun() const { return !queue_.empty() && queue_.front().begun(); }
  // The first of which not all packets were sent; null when there is none.
  QueuedWork* unsent() { return has_unsent() ? &queue_[unsent_] : nullptr; }
  const QueuedWork* unsent() const { return has_unsent() ? &queue_[unsent_] : nullptr; }
  // True when no other follows unsent().
  bool unsent_is_last() const { return unsent_ + 1 == queue_.size(); }
  // The one that owns that number, has begun and not ended; null when there is none.
  QueuedWork* find(Psn psn);
  // The one of that cookie when all its packets were sent; null when it was not found before the
  // first one that has not begun.
  QueuedWork* find_sent(const void* cookie);
  // Bytes of the packet that the peer lacks first, or of the answer to it.
  std::size_t oldest_bytes(Psn acknowledged, std::size_t path_mtu) const;

  // Appends work; its list of SGEs is copied. With a status other than kSuccess no packet of it may
  // leave.
  void post(const work::Work& work, work::CompletionStatus status);
  // Removes the SEND of that cookie. False when a packet of it was sent, or there is none.
  bool withdraw(const void* cookie);
  // unsent(), if it has not begun, gets packet numbers from `next` on. Of a read of more than
  // `part` bytes the rest becomes a request of its own behind it.
  void begin_unsent(Psn next, std::uint64_t part, std::size_t path_mtu);
  // `count` packets of unsent() were sent.
  void sent(std::uint32_t count);
  // Removes the first. Returns the end that is to be reported: none for a RESYNC and for a part of
  // a read, whose status goes to the next part, which need not begin then.
  std::optional<work::Ended> pop();
  // The peer refused that work, and numbers from its first unsent packet on are void: the work
  // behind it begins anew behind a RESYNC. Pointers into the queue are void, too.
  void restart_behind(QueuedWork& refused);
  // The peer has given up what it had of that message, and numbers from its first unsent packet on
  // are void: it and the work behind it begin anew behind a RESYNC.
  void restart_from(QueuedWork& given_up);
  // The peer has executed all packets before `executed`, which were cut for that path MTU, and the
  // numbers from there on are void: the rest begins anew. Reads without all answers begin anew,
  // too, and with `broken_off` a message that continued behind an earlier restart.
  void restart(Psn executed, std::size_t path_mtu, bool broken_off);
  // Asks once more for values of atomic operations that the peer has executed, as all before
  // `executed`. False when none is lacking.
  bool ask_for_atomics(Psn executed);
  // Releases unused memory.
  void trim() {
    if (queue_.empty()) Queue().swap(queue_);
  }

  // Work that has begun and waits for a value.
  unsigned awaited() const { return awaited_; }
  // Values that the peer remembers for repeated requests, from the oldest awaited one on.
  unsigned remembered() const { return remembered_; }
  // Those answers shall be requested once more.
  void ask_for(QueuedWork& work, const AnswerSet& answers);
  // The same for answers that should have come before `end`, did not, and were last requested a
  // `round_trip` ago. Returns whether there are such.
  bool ask_for_lost(Psn end, Time now, Duration round_trip);
  bool asks_again() const { return asking_again_ != 0; }
  // The first with answers to be requested once more. Only when asks_again().
  QueuedWork& first_asking_again();
  // Those answers were requested once more, or one has arrived.
  void asked_for(QueuedWork& work, const AnswerSet& answers);
  // All answers of that work are in place, or none is awaited any more.
  void answered(QueuedWork& work);

 private:
  bool has_unsent() const { return unsent_ < queue_.size(); }
  std::size_t index_of(const QueuedWork& work) const;
  void split_unsent(std::uint64_t part);
  void begin_anew(std::size_t place);
  void insert_resync(std::size_t place);
  void skip_ended(Psn next);

  Queue queue_;
  std::size_t unsent_ = 0;  // place of unsent()
  unsigned asking_again_ = 0;
  unsigned awaited_ = 0;
  unsigned remembered_ = 0;
};

}  // namespace weft::transport
