// SPDX-License-Identifier: BSD-2-Clause
// Which requests are carried out, in which order, and what is the peer told?
//
// (IBTA 9.7.) Each request is carried out once, in the order of its numbers; what comes again is
// answered again. A foreign peer is told of the first missing packet, and sends all packets from
// there on. A peer that is Weft (Settings::selective) is told of each missing packet: a NAK for a
// sequence error whose message number (MSN) is how many are missing from its number on. What came
// behind them is kept; when an answer to that is asked for, a NAK that says that none is missing
// names the last packet that came: all before it are there, or were named.
#pragma once

#include <map>
#include <vector>

#include "base/budget.h"
#include "transport/psn_ranges.h"
#include "transport/settings.h"
#include "transport/target.h"
#include "wire/packet.h"

namespace weft::transport {

// The receiving half of a flow. Whatever the peer sends, it keeps at most kMaxHeld packets, as far
// as `share` has room for them, and what is needed to answer as many reads and atomic operations as
// were agreed on, and up to kMostAnswers with repeated ones: not their data. One thread at a time;
// the caller moves the packets, whose ICRC it has checked, and whose sender is the peer.
class Responder {
 public:
  // `share`, if not null, is charged for packets that came early, and outlives the responder.
  Responder(const Settings& settings, Target& target, Budget::Share* share = nullptr)
      : settings_(settings), target_(target), share_(share) {
    expected_ = highest_ = settings.first_expected;
  }
  ~Responder();
  Responder(const Responder&) = delete;
  Responder& operator=(const Responder&) = delete;

  // Takes in a request.
  void take(const wire::Packet& request, Time now);
  // Writes the next response, from its base header to its padding, into `out`, which has room for
  // wire::kMaxHeaderBytes and the path MTU. Returns its length, or 0 when there is none.
  std::size_t next(std::span<std::byte> out);
  // True when next() would have a packet.
  bool ready() const;
  // When the first of those packets came that were not asked an answer for and have not got one;
  // Time::max() when there are none. They should get it some time soon: answer_all() makes it
  // ready.
  Time unanswered_since() const { return unanswered_since_; }
  void answer_all() { ack_owed_ = ack_owed_ || unanswered_since_ != Time::max(); }

  // The peer has nothing in flight, and sends smaller packets from now on. False while that is not
  // so, or when they are not smaller.
  bool narrow(std::size_t path_mtu);
  // The same for larger ones.
  bool widen(std::size_t path_mtu);
  const Settings& settings() const { return settings_; }

  // After a refused request of a connection nothing is carried out any more.
  bool failed() const { return refusing_ && !datagrams(); }
  // All packets before that one were taken.
  Psn expected() const { return expected_; }
  // Requests that were carried out.
  std::uint32_t messages() const { return message_number_; }

  // Statistics of packets that were not taken as they came.
  struct Counts {
    std::uint64_t duplicates = 0;
    std::uint64_t kept = 0;     // came before some that were missing
    std::uint64_t dropped = 0;  // the same, where they are not kept; after a refusal; no requests
    std::uint64_t refused = 0;
  };
  const Counts& counts() const { return counts_; }

 private:
  bool resize(std::size_t path_mtu);
  // Answers that are owed at the same time, repeated ones included.
  static constexpr std::size_t kMostAnswers = 64;

  // A packet that came too early.
  struct Kept {
    wire::Packet packet;
    std::vector<std::byte> payload;
  };
  // Beside the payload: the node of the map, two heap blocks, and the hole that it may leave before
  // it, which is noted twice.
  static constexpr std::size_t kKeptCost = sizeof(Kept) + 192;
  struct Earlier {
    bool operator()(Psn a, Psn b) const { return a.before(b); }
  };
  // A read or an atomic operation: what is answered, and remembered in case that it comes again.
  struct Value {
    bool reads = false;
    bool lost = false;      // its memory was gone when it was asked for
    bool repeated = false;  // answered before
    PsnRange range;
    wire::Reth memory;           // of a read
    std::uint64_t original = 0;  // of an atomic operation
    std::uint32_t message_number = 0;
    std::uint32_t written = 0;  // packets of the answer
  };
  enum class Message : std::uint8_t { kNone, kSend, kWrite };

  bool datagrams() const { return settings_.kind == wire::Transport::kReliableDatagram; }
  void carry_out(const wire::Packet& request, Time now);
  RequestVerdict execute(const wire::Packet& request, const wire::Layout& layout);
  RequestVerdict judge_shared_receive(const wire::Packet& request, const wire::Layout& layout);
  RequestVerdict take_send(const wire::Packet& request, const wire::Layout& layout);
  RequestVerdict take_write(const wire::Packet& request, const wire::Layout& layout);
  RequestVerdict take_read(const wire::Packet& request);
  RequestVerdict take_atomic(const wire::Packet& request);
  bool in_sequence(const wire::Packet& request, const wire::Layout& layout) const;
  bool right_size(const wire::Packet& request, const wire::Layout& layout) const;
  bool may_ask() const;
  void refuse(const RequestVerdict& verdict);
  void advance(std::uint32_t count, bool ends_message);

  void take_early(const wire::Packet& request, Time now);
  bool keep(const wire::Packet& request);
  void give_back(std::size_t payload);
  void forget_early();
  void take_kept(Time now);
  void filled(Time now);
  void ask(Time now);
  void take_again(const wire::Packet& request);
  void read_again(const wire::Packet& request);
  void answer_again(Value value);
  void resynchronise(const wire::Packet& request);

  void remember(const Value& value);
  std::uint32_t packets_for(std::uint64_t length) const;
  std::size_t write_value(std::span<std::byte> out);
  std::size_t write_read(Value& value, std::span<std::byte> out);
  std::size_t write_lost_read(Psn psn, std::span<std::byte> out);
  std::size_t write_status(Psn psn, std::uint8_t syndrome, std::uint32_t number,
                           std::span<std::byte> out);
  wire::Packet response(wire::Operation operation, Psn psn, std::uint32_t number) const;

  Settings settings_;
  Target& target_;
  Budget::Share* const share_;
  Psn expected_;
  std::uint32_t message_number_ = 0;
  Message message_ = Message::kNone;  // has begun and not ended
  wire::Reth memory_;                 // of a write
  std::uint64_t received_ = 0;        // bytes of the message
  std::uint32_t shared_receive_ = 0;  // that its first packet named
  bool refusing_ = false;             // until the peer agrees on new numbers (RESYNC), if ever
  std::uint8_t refusal_ = 0;          // with that syndrome
  bool not_ready_ = false;            // what follows is dropped until that packet comes again

  // Missing packets.
  bool told_ = false;  // the peer, if it is not Weft, knows of the missing one
  Psn highest_;        // behind the last packet that came
  PsnRanges holes_;
  std::map<Psn, Kept, Earlier> kept_;
  Time asked_at_{};
  Duration fill_time_ = std::chrono::milliseconds(1);  // from asking to getting, roughly
  std::vector<PsnRange> asked_;                        // that the peer is to be told of

  // Answers, in the order in which they go: few, and no memory where there are none.
  std::vector<Value> answers_;
  std::vector<Value> remembered_;
  bool ack_owed_ = false;
  bool report_owed_ = false;  // of the last packet that came
  Time unanswered_since_ = Time::max();
  std::uint8_t nak_ = 0;  // a syndrome that is owed instead, or 0
  Counts counts_;
};

}  // namespace weft::transport
