// SPDX-License-Identifier: BSD-2-Clause
// How does the peer execute each posted work request exactly once?
//
// (IBTA 9.7.) Requests are numbered packet by packet; a packet that the peer does not acknowledge
// is sent again. A peer that is Weft names the packets that it lacks; others want all from the
// first one on. A refused request ends a connection; of reliable datagrams it ends alone, after
// which both ends agree on new numbers (RESYNC, IBTA 9.8.3).
//
// send_queue.h keeps the work requests, packetizer.h cuts packets, in_flight.h counts them,
// window.h limits them, retry_timer.h notices silence, black_hole.h vanishing large packets. The
// requester draws the conclusions from responses and timeouts. A black hole is a suspicion only, as
// packets may be lost many times in a row: so the requester does nothing about it. The caller may
// agree with the peer on another path MTU at any time: pause(), then restart().
#pragma once

#include "transport/packetizer.h"
#include "transport/retry_timer.h"
#include "wire/packet.h"

namespace weft::transport {

// The sending half of a flow. One thread at a time; the caller knows the time, and moves the
// packets.
class Requester {
 public:
  // `sink` and `memory` outlive it.
  Requester(const Settings& settings, work::WorkSink& sink, work::LocalMemory& memory);
  Requester(const Requester&) = delete;
  Requester& operator=(const Requester&) = delete;

  // Takes work of at most kMaxMessage bytes in at most kMaxWorkSges SGEs. After a failure of the
  // flow it ends with kFlushed at once, or behind what is still to be reported. With a `refusal`
  // nothing of it is sent, whatever it is: its turn ends the flow, and the work with that status.
  void post(const work::Work& work,
            work::CompletionStatus refusal = work::CompletionStatus::kSuccess);

  // Forgets the SEND of that cookie, which is not reported then. False when a packet of it has been
  // sent, or there is none.
  bool withdraw(const void* cookie);

  // Writes the next packet, from its base header to its padding, into `out`, which has room for
  // wire::kMaxHeaderBytes and the path MTU. Returns its length, or 0 when nothing may be sent now.
  // When an SGE of its work may not be read the flow fails: the peer may have that packet already,
  // and would carry out twice what is sent again behind it. A connection lets all work before it
  // end first.
  std::size_t next(Time now, std::span<std::byte> out);
  // True when next() would have a packet, if the SGE that it needs may be read.
  bool ready(Time now) const;

  // Takes in a response: acknowledgement, NAK, read response or atomic acknowledgement. One that
  // answers nothing that was asked is ignored.
  void take(const wire::Packet& response, Time now);
  // The peer has said in other ways that the work of that cookie has arrived: so has all before it.
  void arrived(const void* cookie, Time now);
  // The peer has sent something other than a response: it lives. While a black hole is possible
  // the retransmission timeout is reset.
  void note_received() {
    black_hole_.note_received();
    if (!pmtu_black_hole() && pmtu_probing()) timer_.reset_backoff(window_.rto());
  }
  // Large packets seem to vanish: the oldest, of more than kSurePathMtu bytes or with such an
  // answer, was sent again many times, each time after the peer had been heard, and is still
  // lacking.
  bool pmtu_black_hole() const { return black_hole_.suspected(); }
  // The same is possible, or the peer is silent: the caller should ask after each tick() whether it
  // lives.
  bool pmtu_probing() const {
    return timer_.timeouts() > 1 &&
           queue_.oldest_bytes(in_flight_.acknowledged(), settings_.path_mtu) > kSurePathMtu;
  }
  // A packet of this flow was ECN-marked: a CNP arrived.
  void marked(Time now) { window_.marked(now); }

  // No packet leaves, and acknowledgements and read responses are ignored, until restart(): only
  // values of atomic operations are requested again.
  void pause() { packetizer_.pause(); }
  // Packet numbers from here on were never used.
  Psn unused() const { return in_flight_.next(); }
  // The end of pause(): the peer has executed all packets before `executed`, and from unused() on
  // it expects packets of that path MTU (Responder::restart()). The numbers between are void. False
  // while the value of an executed atomic operation is lacking, which is requested again, and if
  // that number was not used: the pause goes on.
  bool restart(Psn executed, std::size_t path_mtu, Time now);

  // When tick() has something to do; Time::max() when only a packet can change anything.
  Time deadline() const;
  // When next() or tick() has something to do: Time::min() for at once.
  Time due() const;
  // Goes on where the peer has not answered for too long.
  void tick(Time now);

  // Ends all work with that status, and all that is posted later with kFlushed.
  void fail(work::CompletionStatus status);

  // Gives memory back that the work had which has ended.
  void trim() { queue_.trim(); }

  const Settings& settings() const { return settings_; }
  // Work that has not ended.
  bool busy() const { return !queue_.empty(); }
  // Packets that were sent and of which the peer has said nothing since.
  std::uint32_t under_way() const { return in_flight_.count(); }
  // Packets of the message whose turn it is that may leave now.
  std::uint32_t at_hand() const { return packetizer_.at_hand(); }
  bool failed() const { return failed_; }
  const Window& window() const { return window_; }

 private:
  void acknowledge(Psn end, Time now);
  void settle();
  void stop();
  void take_acknowledge(const wire::Packet& response, Time now);
  void take_read(const wire::Packet& response, Time now);
  void lose_read(QueuedWork& work, Time now);
  void take_atomic(const wire::Packet& response, Time now);
  void take_sequence_error(Psn psn, std::uint32_t count, Time now);
  void take_rnr(Psn psn, std::uint8_t code, Time now);
  void take_refusal(const wire::Packet& response, std::uint8_t code, Time now);
  void resynchronise();

  Settings settings_;
  work::WorkSink& sink_;
  work::LocalMemory& memory_;
  Window window_;
  SendQueue queue_;
  InFlight in_flight_;
  BlackHole black_hole_;
  Packetizer packetizer_;
  RetryTimer timer_;
  Psn restarted_from_;  // the first packet number since the last restart
  bool failed_ = false;
};

}  // namespace weft::transport
