// SPDX-License-Identifier: BSD-2-Clause
// What is an endpoint, of reliable datagrams, of one connection or of datagrams that may be lost?
#pragma once

#include <memory>
#include <string>

#include "base/stats.h"
#include "messaging/address_vector.h"
#include "messaging/calls.h"
#include "messaging/connected_peer.h"
#include "messaging/datagram_service.h"
#include "messaging/endpoint_setup.h"
#include "messaging/message_receiver.h"
#include "messaging/message_sender.h"
#include "messaging/peer_flows.h"
#include "messaging/receive_queue.h"
#include "messaging/shared_port.h"
#include "os/optional_lock.h"

namespace weft::messaging {

// An endpoint that exchanges messages with, and accesses memory of, any number of peers, reliably
// and in order per peer (FI_EP_RDM), or exchanges messages that may be lost (FI_EP_DGRAM): what
// finds no receive, no room or no peer is dropped, and nothing of it is reported. Threads as
// EndpointSetup::locking says; to open, close, join, leave and ask for drops are control calls,
// which any thread may make, but none that is inside. The engine that drives it is its port().
//
// With EndpointSetup::connection it is a connected endpoint (FI_EP_MSG): it has one peer, number 0,
// which ConnectedPeer determines. Until then sends answer ENOTCONN and receives
// wait; after ConnectedPeer::disconnect() both answer ESHUTDOWN, sends as soon as the way to the
// peer is broken, but receives still take messages that came before. Of anybody else nothing is let
// in.
//
// With EndpointSetup::receives it takes from a queue that others take from, too; receives are
// posted there, and each is reported by the endpoint whose message it got.
//
// Calls return 0 when the operation was started (its end is reported as asked), or an errno and
// then nothing was started: EAGAIN (poll, then call again), EINVAL, ENOTCONN, ESHUTDOWN, and if
// silent also what would otherwise have been reported: EHOSTUNREACH, ECONNRESET, EACCES, EFAULT,
// ETIMEDOUT.
//
// It puts the parts together, each of which answers one question: PeerFlows (which flow leads to a
// peer?), MessageSender, MessageReceiver, DatagramService, ConnectedPeer, Sleepers. They use each
// other, with the lock of the queue held, and live as long as the endpoint.
class Endpoint {
 public:
  // Makes the endpoint reachable. Errors: those of device::Port::open(), and
  // EINVAL for other addresses than those of endpoints with the same receives.
  static Result<std::unique_ptr<Endpoint>> open(EndpointSetup setup);
  // Closes it, as close() does, and forgets what is pending without reporting it. Where close()
  // would fail, a peer that is stopped may still write into a receive buffer.
  ~Endpoint();
  Endpoint(const Endpoint&) = delete;
  Endpoint& operator=(const Endpoint&) = delete;
  // Takes nothing in any more, so that no peer writes into the buffers of receives afterwards; only
  // what drives the endpoint, and the destructor, may be called then. A shared receive whose
  // message was under way is reported with ECANCELED. Waits up to 2 s for peers that are in the
  // middle of copying into a buffer. Error: EBUSY when one still is. Then the endpoint goes on, and
  // reports those messages with ECANCELED when their copying has ended; close() may be called
  // again.
  Status close();

  // Sends a message.
  int send(SendCall& call) { return answer(sender_.send(call)); }
  // Instead of send(), for the service kDatagram: the message is on its way or dropped when this
  // returns, and its SGEs may change. Up to shm::kMaxEager bytes. Never waits for a peer.
  int send_datagram(SendCall& call);
  // The same to all members of a multicast group: call.peer is what join() returned. EINVAL for
  // another number, EACCES when the group was joined for receiving only.
  int send_to_group(SendCall& call);
  // Joins a multicast group, to send to it, to receive from it or both (fi_cm(3)). Errors:
  // EADDRINUSE when it was joined already, others of device::Port::join().
  Result<PeerIndex> join(const os::SocketAddress& group, bool sends, bool receives) {
    const ControlGuard guard(lock_);
    return datagrams_.join(group, sends, receives);
  }
  // Leaves a group that was joined; its number may be given out again.
  void leave(PeerIndex group) {
    const ControlGuard guard(lock_);
    datagrams_.leave(group);
  }
  // The counters of its port.
  const Stats& stats() {
    const ControlGuard guard(lock_);
    return at_.port->stats_now();
  }
  // How much there is of what it has; of its port and its receives also what others share.
  struct Load {
    std::size_t destinations;  // peers that a flow leads to
    std::size_t sources;       // peers whose messages are let in
    std::size_t receives;      // that wait for messages
    std::size_t kept_bytes;    // of memory, for messages that wait for receives
  };
  Load load();
  // The address by which peers know it.
  os::SocketAddress name() {
    const ControlGuard guard(lock_);
    return at_.name;
  }
  // Reads or writes memory of a peer.
  int access(AccessCall& call) { return answer(sender_.access(call)); }
  // Carries out an atomic operation on memory of a peer.
  int atomic(AtomicCall& call) { return answer(sender_.atomic(call)); }
  // Reports an operation (SendCall, AccessCall, AtomicCall) that was not started, and never will
  // be, as failed.
  template <class Call>
  void abandon(const Call& call, int error) {
    sender_.abandon(call, error);
  }
  // Reports an operation whose buffers or keys must not be used as failed (EACCES), instead of
  // starting it: 0, or EAGAIN while the completion queue or the transmit context has no room.
  template <class Call>
  int refuse(const Call& call, const RefusedAccess& refused) {
    return answer(sender_.refuse(call, refused));
  }
  // How many more operations it takes now, as far as it and its completion queue are concerned.
  std::size_t transmit_room() { return sender_.room(); }
  // Where this endpoint takes its receives from.
  ReceiveQueue& receives() { return queue_; }
  // Ends a posted receive, or a send of which no byte has been delivered, with ECANCELED; ENOENT
  // when there is none with that context (fi_cancel(3)).
  int cancel(void* context);

  // Runs `action` while no other thread is inside: what the calls below need outside of a
  // ConnectionSink. A control call.
  template <class Action>
  auto exclusively(Action action) {
    const ControlGuard guard(lock_);
    return action();
  }
  // The peer of a connected endpoint.
  ConnectedPeer& peer() { return peer_; }

  // For the queue: what the endpoint was made of,
  const EndpointSetup& setup() const { return setup_; }
  // what takes messages in for it,
  MessageReceiver& receiver() { return receiver_; }
  // and the port, whose engine drives it, alone or with others.
  SharedPort& port() const { return shared_; }

  // For its port, with the lock held. Where its messages arrive.
  EndpointPort& at() const { return at_; }
  // Its flows to peers.
  PeerFlows& flows() { return flows_; }
  // What a poll that visits it does after it has taken messages in, and whether the next one has to
  // visit it, too.
  void end_poll();
  bool awaits_visit() const { return peer_.parting_is_due() || flows_.has_deaths(); }
  // Notices the ends of the peers that it sends to, and of those that it hears.
  void check_flows();
  void check_peers();
  // As PeerFlows::watch_processes().
  bool watch_processes();

 private:
  explicit Endpoint(EndpointSetup setup);
  int answer(int status) { return status != kPollThenAgain ? status : poll_then_again(); }
  [[gnu::noinline, gnu::cold]] int poll_then_again();
  bool try_to_close();
  void leave_queue();

  const EndpointSetup setup_;
  SharedPort& shared_;
  OptionalLock& lock_;  // of the port and of the queue
  EndpointPort& at_;
  std::unique_ptr<ReceiveQueue> own_queue_;  // null when it is shared
  ReceiveQueue& queue_;
  MessageSender sender_;
  PeerFlows flows_;  // ends before the sender, which its flows report to
  DatagramService datagrams_;
  MessageReceiver receiver_;
  ConnectedPeer peer_;
};

}  // namespace weft::messaging
