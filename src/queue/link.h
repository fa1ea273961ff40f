// SPDX-License-Identifier: BSD-2-Clause
// How does a queue pair reach its peer?
#pragma once

#include <cstdint>
#include <span>

#include "base/time.h"
#include "memory_message.h"
#include "queue/attributes.h"
#include "queue/port.h"
#include "queue/send_queue.h"
#include "roce/packet_handler.h"
#include "work/status.h"

namespace weft::queue {

// The path of one queue pair: packets (PacketLink, DatagramLink) or shared memory (MemoryLink).
// Functions of the send half are called with the queue pair's send lock held, those of the receive
// half with the lock of its port, and the two that send with the port's transmit lock besides.
class Link {
 public:
  virtual ~Link() = default;

  // Work may be posted from now on.
  virtual void begin_sending(const QpAttributes& attributes) = 0;
  // Takes work, with its cookie. Its end is reported to the link's work::WorkSink, in the order of
  // the posts.
  virtual void post(const QpSendRequest& request) = 0;
  // Ends all work with kFlushed, and all that is posted later.
  virtual void flush() = 0;

  // Takes in a packet that concerns the receive half, or the send half.
  virtual void take_request(const roce::PacketArrival& arrival, Time now) = 0;
  virtual void take_response(const roce::PacketArrival& arrival, Time now) = 0;
  virtual void take_cnp(Time /*now*/) {}

  // Sends what the send half has. `polls`: the program polls often, so that requests may wait for a
  // few polls.
  virtual void emit_requests(bool polls, Time now) = 0;
  // Sends what the receive half has, with the port's lock held, too. `replies`: requests were
  // posted since this half had something last.
  virtual void emit_answers(bool /*replies*/, Time /*now*/) {}
  // Whether emit_answers() is to be called when requests are posted.
  virtual bool expects_post() const { return false; }
  // When the send half, or the receive half, has something to send or to do in tick(); Time::max()
  // when a packet or a post alone can change that.
  virtual Time send_due() const = 0;
  virtual Time receive_due() const { return Time::max(); }
  virtual void tick(Time now) = 0;

  // A refused request has ended the connection, and its answer was sent.
  virtual bool receive_failed() const = 0;
  // Takes over attributes that may change in RTS (ibv_modify_qp(3)).
  virtual void change(const QpAttributes& attributes) = 0;

  // Through shared memory: why a message from that source stays in its ring (answer_of()); 0: it is
  // taken next. Then why it has failed, or 0.
  virtual std::uint16_t postpones(std::uint32_t /*source*/, const MessageHead& /*head*/) {
    return answer_of(AnswerKind::kByPackets);
  }
  virtual std::uint16_t take_message(std::uint32_t /*source*/, const MessageHead& /*head*/,
                                     std::span<const std::byte> /*bytes*/) {
    return answer_of(AnswerKind::kByPackets);
  }
  // A source has left.
  virtual void forget_source(std::uint32_t /*source*/) {}
  // Takes in what the peer has said there about work of the send half.
  virtual void take_answers(Time /*now*/) {}
  // Whether the send half has work whose answers it has to look for; what a look finds, with the
  // port's lock held.
  virtual bool has_near_work() const { return false; }
  virtual Glance glance() const { return Glance::kIdle; }
  // The peer is reached by packets only: another link takes over what is not executed.
  virtual bool wants_packets() const { return false; }
  virtual void hand_over(Link& /*successor*/) {}

  // Whether packets from there are the peer's.
  virtual bool is_peer(const os::SocketAddress& from) const = 0;
};

}  // namespace weft::queue
