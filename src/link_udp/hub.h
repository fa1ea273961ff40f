// SPDX-License-Identifier: BSD-2-Clause
// What do the channels of one endpoint share?
#pragma once

#include <chrono>
#include <cstdint>
#include <list>
#include <span>

#include "base/budget.h"
#include "link/inbox.h"
#include "link_udp/conn_message.h"
#include "memory/own_memory.h"
#include "os/clock.h"
#include "roce/trains.h"

namespace weft::udp {

// ICMP port unreachable can be forged. Without a quoted request of the flow the peer counts as dead
// only after so many errors in a row, without a packet of the peer in between.
inline constexpr unsigned kMostUnreachable = 3;

class RdmReceiver;
class RdmSender;
struct Operation;

// The endpoint as its channels see it. One thread at a time.
class Hub {
 public:
  virtual ~Hub() = default;

  // The endpoint, as a flow's ends introduce it to each other.
  virtual Introduction introduction() const = 0;
  virtual const os::SocketAddress& name() const = 0;
  virtual link::Service service() const = 0;
  virtual std::size_t eager_limit() const = 0;
  // How long operations wait for a peer that has not answered yet.
  virtual std::chrono::milliseconds connect_timeout() const = 0;
  // How long a peer may be silent that something is expected from.
  virtual std::chrono::milliseconds peer_timeout() const = 0;
  // How long a path MTU stands before a larger one is tried.
  virtual std::chrono::milliseconds raise_interval() const = 0;
  // When the last time was that nothing was left to be read of what had come.
  virtual os::Time emptied() const = 0;
  // Whether peers' accesses are announced.
  virtual bool counts(Access access) const = 0;
  virtual memory::OwnMemory& memory() = 0;

  // Has something to send, or waits for something.
  virtual void activate(RdmSender& channel) = 0;
  // Sends what the channel has without waiting for the next poll.
  virtual void send_now(RdmSender& channel, os::Time now) = 0;
  // Says something to a peer's manager of connections.
  virtual void send_cm(const roce::Path& path, const ConnMessage& message) = 0;

  // The way to the peer carries no more than that: so it is for all flows between both.
  virtual void narrow(const os::SocketAddress& peer, std::size_t path_mtu) = 0;

  // The path MTU of the way to a peer, as the system knows it.
  virtual std::size_t path_mtu_to(const os::SocketAddress& peer) const = 0;

  // A number by which the peer may name the operation, until forget().
  virtual std::uint32_t name_exchange(Operation& operation) = 0;
  virtual void forget_exchange(std::uint32_t exchange) = 0;
  // The operation of that number, if it was asked for over the flow of that identity (message.h).
  virtual Operation* find_exchange(std::uint32_t exchange, std::uint64_t flow) = 0;
  // The receive of that number, if it is for a message that this source offered.
  virtual Operation* find_receive(std::uint32_t exchange, std::uint32_t source) = 0;

  // The receive that has asked for that offer of that source.
  virtual Operation* find_taker(const link::Offer& offer) = 0;

  // Something has been agreed upon with that station, or asked of it, and not ended.
  virtual bool waits_for(std::uint64_t station) const = 0;

  // The flow back to the sender of a channel: made when it is first needed.
  virtual RdmSender& return_path(const RdmReceiver& channel) = 0;
  // The peer of that channel has so many answers to acknowledge that it may ask for nothing more
  // (RdmSender::may_answer).
  virtual bool owes_too_much(const RdmReceiver& channel) = 0;
  // What the endpoint keeps for its peers: see StationOptions.
  virtual Budget& packet_memory() = 0;
  virtual Budget& message_memory() = 0;
  virtual std::list<Operation>& free_operations() = 0;
  // A peer's message is in place, for the receive `cookie`; or never will be.
  virtual void received(void* cookie, int error) = 0;
  // The endpoint goes: no message is taken in any more.
  virtual bool closing() const = 0;
  // The sink of the current poll.
  virtual link::InboxSink& sink() = 0;
};

}  // namespace weft::udp
