// SPDX-License-Identifier: BSD-2-Clause
// How does work become packets, and how is it made sure that the peer carries each out exactly
// once?
//
// (IBTA 9.7.) Requests are numbered packet by packet; what the peer does not acknowledge goes
// again. A peer that is Weft names the packets that it lacks; others want all from the first one
// on. What the peer refuses ends a connection; of reliable datagrams it ends that request only,
// after which the numbers are agreed upon anew (RESYNC, IBTA 9.8.3).
//
// A router may drop large packets without a word (RFC 4821, RFC 8899): then the peer is heard, and
// what it lacks first, large, does not get there however often it is sent. That is a suspicion
// only, for packets may be lost many times in a row. So nothing is done about it here: the caller
// may send large packets in fragments (pieces.h), which is never wrong, and agree on smaller ones.
#pragma once

#include <algorithm>
#include <array>
#include <boost/container/deque.hpp>
#include <optional>

#include "transport/answer_set.h"
#include "transport/psn_ranges.h"
#include "transport/settings.h"
#include "transport/window.h"
#include "transport/work.h"
#include "wire/packet.h"

namespace weft::transport {

// The sending half of a flow. One thread at a time; the caller knows the time, and moves the
// packets.
class Requester {
 public:
  // `sink` and `memory` outlive it.
  Requester(const Settings& settings, WorkSink& sink, LocalMemory& memory);
  Requester(const Requester&) = delete;
  Requester& operator=(const Requester&) = delete;

  // Takes work of at most kMaxMessage bytes in at most kMaxPieces pieces. After a failure of the
  // flow it ends with kFlushed at once, or behind what is still to be reported.
  void post(const Work& work);

  // Forgets the SEND of that cookie, which is not reported then. False when a packet of it has been
  // sent, or there is none.
  bool withdraw(const void* cookie);

  // Writes the next packet, from its base header to its padding, into `out`, which has room for
  // wire::kMaxHeaderBytes and the path MTU. Returns its length, or 0 when nothing may be sent now.
  // When a piece of its work may not be read the flow fails: the peer may have that packet already,
  // and would carry out twice what is sent again behind it.
  std::size_t next(Time now, std::span<std::byte> out);
  // True when next() would have a packet, if the piece that it needs may be read.
  bool ready(Time now) const;

  // Takes in a response: acknowledgement, NAK, read response or atomic acknowledgement. One that
  // answers nothing that was asked is ignored.
  void take(const wire::Packet& response, Time now);
  // The peer has said in other ways that the work of that cookie has arrived: so has all before it.
  void arrived(const void* cookie, Time now);
  // The peer has sent something other than a response: it lives. While a black hole is suspected
  // the retransmission timeout is reset.
  void heard() {
    heard_since_ = true;
    if (!pmtu_black_hole() && pmtu_probing()) rto_ = window_.rto();
  }
  // Large packets seem not to get there: the oldest, of more than kSurePathMtu bytes or with such
  // an answer, was sent kVain times, each time after the peer had been heard of, and is still
  // lacking.
  bool pmtu_black_hole() const { return large_retries_ >= kBlackHoleRetries; }
  // The same may be so, or the peer is silent: it should be asked after each tick() whether it
  // lives.
  bool pmtu_probing() const { return timeouts_ > 1 && oldest_bytes() > kSurePathMtu; }
  // A packet of this flow met a queue: a congestion notification came.
  void marked(Time now) { window_.marked(now); }

  // Work that has not begun waits from now on: the path carries less than it did.
  void hold() { held_ = true; }
  // Something has begun, and not ended.
  bool has_begun() const { return !messages_.empty() && messages_.front().begun(); }
  // The end of hold(): the peer knows the smaller path MTU, and nothing has begun.
  void go_on_with(std::size_t path_mtu) {
    settings_.path_mtu = path_mtu;
    window_.carries(path_mtu);
    held_ = false;
  }

  // When tick() has something to do; Time::max() when only a packet can change anything.
  Time deadline() const;
  // When next() or tick() has something to do: Time::min() for at once.
  Time due() const;
  // Goes on where the peer has not answered for too long.
  void tick(Time now);

  // Ends all work with that status, and all that is posted later with kFlushed.
  void fail(Status status);

  // Gives memory back that the work had which has ended.
  void trim() {
    if (messages_.empty()) Messages().swap(messages_);
  }

  const Settings& settings() const { return settings_; }
  // Work that has not ended.
  bool busy() const { return !messages_.empty(); }
  // Packets that were sent and of which the peer has said nothing since.
  std::uint32_t under_way() const;
  // Packets of the message whose turn it is that may leave now.
  std::uint32_t at_hand() const;
  bool failed() const { return failed_; }
  const Window& window() const { return window_; }

  // Statistics of sent packets.
  struct Counts {
    std::uint64_t packets = 0;
    std::uint64_t again = 0;     // of those, sent before
    std::uint64_t timeouts = 0;  // times that the peer did not answer in time
    std::uint64_t ignored = 0;   // answers to nothing that was asked
  };
  const Counts& counts() const { return counts_; }

 private:
  // Work, or a part of a long read, on its way.
  struct Message {
    Work work;  // its list of pieces lies in `pieces`
    std::array<Segment, kMaxPieces> pieces{};
    std::size_t piece_count = 0;
    std::uint64_t offset = 0;  // of a part: where in the pieces it begins
    bool whole = true;         // the last part: its end is reported
    bool resync = false;       // no work at all
    Psn first;
    std::uint32_t packets = 0;  // 0 until it has begun
    std::uint32_t cut = 0;      // how many of them were sent
    AnswerSet there;            // answers of a read that are in place
    AnswerSet again;            // answers that are to be asked for once more
    Time asked{};               // when it was asked for any last
    bool ended = false;
    Status status = Status::kSuccess;
    std::uint8_t detail = 0;

    std::span<const Segment> buffers() const { return {pieces.data(), piece_count}; }
    bool begun() const { return packets != 0; }
    bool reads() const { return work.kind == WorkKind::kRead && !resync; }
    // Its answer is a value, not just an acknowledgement.
    bool asks() const { return work.kind >= WorkKind::kRead && !resync; }
    PsnRange range() const { return {first, packets}; }
    Psn end() const { return range().end(); }
    // Place of the first answer that is not in place; `packets` when all are.
    std::uint32_t first_lacking() const { return there.gap_from(0); }
    AnswerSet lacks_before(Psn psn) const {
      const std::int32_t count = std::max(psn.since(first), 0);
      return AnswerSet(0, std::min(packets, static_cast<std::uint32_t>(count))).without(there);
    }
  };
  // Blocks of two: the standard one would have one message in each, and ask for memory every time;
  // larger ones, of which every flow has had one, leave holes between flows.
  using Messages =
      boost::container::deque<Message, void,
                              boost::container::deque_options_t<boost::container::block_size<2>>>;

  // Packets (requester.cc).
  std::uint32_t part_of_read() const;
  void split(std::size_t place);
  bool may_cut() const;
  bool may_repair() const;
  bool may_begin(const Message& message) const;
  void begin(Message& message);
  std::size_t cut_next(Time now, std::span<std::byte> out);
  std::size_t send_missing(Time now, std::span<std::byte> out);
  std::size_t ask_again(Time now, std::span<std::byte> out);
  std::size_t write(Message& message, std::uint32_t index, std::uint32_t count, bool ask,
                    std::span<std::byte> out);
  std::size_t payload_of(const Message& message, std::uint32_t index) const;
  bool wants_answer(const Message& message);
  bool is_answer_due() const { return acknowledged_.before(asked_) || asking_ != 0; }
  void sent(Psn psn, bool again, Time now);
  bool waits(Time now) const { return waiting_ && now < not_before_; }
  void go_on(Time now);
  void probe();
  void lacks(PsnRange range);
  void told(Psn end);
  std::size_t oldest_bytes() const;
  void tried_again(Time now);

  // Answers (requester_answers.cc).
  Message* find(Psn psn);
  void take_acknowledge(const wire::Packet& response, Time now);
  void take_read(const wire::Packet& response, Time now);
  void take_atomic(const wire::Packet& response, Time now);
  void take_sequence_error(Psn psn, std::uint32_t count, Time now);
  void take_rnr(Psn psn, std::uint8_t code, Time now);
  void take_refusal(Psn psn, std::uint8_t code, Time now);
  void acknowledge(Psn end, Time now);
  void miss_answers(Psn end, Time now);
  void ask_for(Message& message, const AnswerSet& answers);
  void answered(Message& message);
  void agree_anew(std::size_t refused);
  void lose_answer(Message& message, Time now);
  void progressed(Time now);
  void settle();
  void pop();
  bool settled(const Message& message) const;
  bool lacks_answer(const Message& message) const {
    return message.asks() && !message.ended && message.begun() &&
           message.first.before(acknowledged_);
  }

  Settings settings_;
  WorkSink& sink_;
  LocalMemory& memory_;
  Window window_;
  Messages messages_;          // that have not ended, or behind one that has not
  std::size_t cutting_ = 0;    // the first of which not all packets were sent
  Psn next_;                   // the first number that was never used
  Psn acknowledged_;           // all before has arrived at the peer
  Psn told_of_;                // all before it has arrived, or is in one of the next two
  PsnRanges missing_;          // to be sent again; none before acknowledged_
  PsnRanges repairs_;          // were sent again; none before acknowledged_
  unsigned probes_ = 0;        // of those, may go whatever the window says
  unsigned asking_again_ = 0;  // messages with Message::again
  unsigned asking_ = 0;        // messages that have begun and wait for a value
  unsigned remembered_ = 0;    // by the peer, as far as they matter: from the first of those on
  unsigned unasked_ = 0;       // packets since an answer was asked for
  bool prompt_ = false;        // a completion waits for one of them
  Psn asked_;                  // behind the last packet that asked for an answer
  std::optional<Psn> resync_;  // which must be acknowledged before anything follows
  bool failed_ = false;
  bool held_ = false;
  std::optional<Psn> timed_;  // the packet whose round trip is measured
  Time timed_at_{};
  Time heard_{};  // the last progress, or when waiting for some began
  Time try_again_ = Time::max();
  Duration rto_;           // doubles while nothing is heard
  unsigned timeouts_ = 0;  // in a row
  // How often the oldest was sent again, each time after the peer had been heard of; since when,
  // and whether it was heard of since.
  static constexpr unsigned kBlackHoleRetries = 8;
  unsigned large_retries_ = 0;
  Time tried_at_{};
  bool heard_since_ = false;
  bool waiting_ = false;  // until not_before_: the receiver was not ready
  Time not_before_{};
  unsigned rnr_in_a_row_ = 0;
  Counts counts_;
};

}  // namespace weft::transport
