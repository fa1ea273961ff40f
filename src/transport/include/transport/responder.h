// SPDX-License-Identifier: BSD-2-Clause
// Which requests are executed, in which order, and what is the peer told?
//
// (IBTA 9.7.) Each request is executed once, in the order of its numbers; a repeated one is
// answered again. A foreign peer is told of the first missing packet, and sends all packets from
// there on. A peer that is Weft (Settings::selective) is told of each missing packet: a NAK for a
// sequence error whose message number (MSN) is how many are missing from its number on. Packets
// behind them are kept; when an answer to such a packet is asked for, a NAK that says that none is
// missing names the last packet that arrived: all before it are there, or were named.
#pragma once

#include "transport/answer_queue.h"
#include "transport/early_packets.h"
#include "transport/inbound_message.h"
#include "transport/settings.h"
#include "wire/packet.h"
#include "work/target.h"

namespace weft::transport {

// The receiving half of a flow. Whatever the peer sends, its memory is limited: EarlyPackets and
// AnswerQueue say to how much. One thread at a time; the caller moves the packets, whose ICRC it
// has checked, and whose sender is the peer.
class Responder {
 public:
  // `share`, if not null, is charged for packets that came early, and outlives the responder.
  Responder(const Settings& settings, work::Target& target, Budget::Share* share = nullptr)
      : settings_(settings),
        target_(target),
        expected_(settings.first_expected),
        message_(target),
        early_(settings.first_expected, share),
        answers_(settings_, target) {}
  Responder(const Responder&) = delete;
  Responder& operator=(const Responder&) = delete;

  // Takes in a request.
  void take(const wire::Packet& request, Time now);
  // Writes the next response, from its base header to its padding, into `out`, which has room for
  // wire::kMaxHeaderBytes and the path MTU. Returns its length, or 0 when there is none.
  std::size_t next(std::span<std::byte> out);
  // True when next() would have a packet.
  bool ready() const { return ack_owed_ || nak_ != 0 || !answers_.empty() || early_.reports(); }
  // True when that packet would be an acknowledgement, and the only one.
  bool only_acknowledges() const {
    return ack_owed_ && nak_ == 0 && answers_.empty() && !early_.reports();
  }
  // When the first of those packets came that were not asked an answer for and have not got one;
  // Time::max() when there are none. They should get it some time soon: answer_all() makes it
  // ready.
  Time unanswered_since() const { return unanswered_since_; }
  void answer_all() { ack_owed_ = ack_owed_ || unanswered_since_ != Time::max(); }

  // The peer sends its next packet with the number `next`, which it has not used before, and from
  // there on packets of that path MTU. Returns the number before which all were executed: the peer
  // sends the rest again, and asks for answers to reads that it lacks. Values of atomic operations
  // are still remembered by their numbers.
  Psn restart(Psn next, std::size_t path_mtu);
  const Settings& settings() const { return settings_; }
  // How long the peer is to wait where it finds no receive, from now on: a code of IBTA table 45.
  void set_rnr_timer(std::uint8_t code) { settings_.rnr_timer = code; }

  // After a refused request of a connection nothing is carried out any more.
  bool failed() const { return refusing_ && !datagrams(); }
  // All packets before that one were taken.
  Psn expected() const { return expected_; }
  // Requests that were carried out.
  std::uint32_t messages() const { return message_number_; }

 private:
  bool datagrams() const { return settings_.kind == wire::Transport::kReliableDatagram; }
  void carry_out(const wire::Packet& request, Time now);
  work::RequestVerdict execute(const wire::Packet& request);
  work::RequestVerdict judge_shared_receive(const wire::Packet& request);
  work::RequestVerdict take_message(const wire::Packet& request);
  work::RequestVerdict take_read(const wire::Packet& request);
  work::RequestVerdict take_atomic(const wire::Packet& request);
  void advance(std::uint32_t count, bool ends_message);
  void refuse(const work::RequestVerdict& verdict);
  void resynchronise(const wire::Packet& request);
  void take_early(const wire::Packet& request, Time now);
  void take_kept(Time now);
  void take_again(const wire::Packet& request);
  std::size_t write_lost_read(const AnswerQueue::Written& lost, std::span<std::byte> out);

  Settings settings_;
  work::Target& target_;
  Psn expected_;
  std::uint32_t message_number_ = 0;
  Psn message_first_;     // the first packet of message_
  bool resumed_ = false;  // no packet of message_ has arrived since restart()
  Psn refused_from_;      // the refused packet, or the first one of its message
  InboundMessage message_;
  EarlyPackets early_;
  AnswerQueue answers_;
  std::uint32_t shared_receive_ = 0;  // that the first packet of a message named
  bool refusing_ = false;             // until the peer agrees on new numbers (RESYNC), if ever
  std::uint8_t refusal_ = 0;          // with that syndrome
  bool not_ready_ = false;            // packets are dropped until the refused one comes again
  bool gap_reported_ = false;         // the peer, if it is not Weft, knows of the missing packet
  bool ack_owed_ = false;
  Time unanswered_since_ = Time::max();
  std::uint8_t nak_ = 0;  // a syndrome that is owed instead, or 0
};

}  // namespace weft::transport
