// SPDX-License-Identifier: BSD-2-Clause
// What is an endpoint, of reliable datagrams, of one connection or of datagrams that may be lost?
#pragma once

#include <array>
#include <atomic>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "device/completion_queue.h"
#include "device/counter.h"
#include "device/port.h"
#include "device/region_counters.h"
#include "messaging/address_vector.h"
#include "messaging/calls.h"
#include "messaging/connection.h"
#include "messaging/matcher.h"
#include "messaging/pool.h"
#include "messaging/receive_queue.h"
#include "os/clock.h"
#include "os/optional_lock.h"

namespace weft::messaging {

// Which events a counter counts; index into Bindings::counters.
enum class Event { kSend, kReceive, kRead, kWrite, kRemoteRead, kRemoteWrite, kCount };

// Where an endpoint reports (fi_ep_bind(3)). What is null is not reported.
struct Bindings {
  device::CompletionQueue* tx = nullptr;
  device::CompletionQueue* rx = nullptr;
  std::array<device::Counter*, static_cast<std::size_t>(Event::kCount)> counters{};
  bool rx_selective = false;  // remote writes with data are reported all the same

  device::Counter* counter(Event event) const { return counters[static_cast<std::size_t>(event)]; }
};

// What an endpoint is made of; all pointers outlive it, but that of its place.
struct EndpointSetup {
  std::shared_ptr<device::Device> device;
  AddressVector* addresses = nullptr;    // empty for a connected endpoint, and stays so
  ConnectionSink* connection = nullptr;  // of a connected endpoint
  // Shared with other endpoints, all with the same addresses; null: receives of its own.
  ReceiveQueue* receives = nullptr;
  std::size_t receive_room = std::size_t{1} << 16;  // of its own ones that wait
  Bindings bindings;
  link::Place place;       // where it is
  os::SocketAddress name;  // by which peers know it: the same, unless that was a wildcard
  DomainId domain;
  ServedAccess served;  // what peers may do to its regions through this endpoint
  Locking locking = true;
  bool count_remote_reads = false;
  bool count_remote_writes = false;
  link::Service service = link::Service::kReliableDatagram;
  device::RegionCounters* region_counters = nullptr;  // of the domain's regions, or none
  // Called, if not null, as device::PortSetup says.
  const std::function<void()>* met_over_network = nullptr;
  const Options* options = &Options::defaults();
};

// Datagrams that an endpoint did not deliver.
struct Drops {
  std::uint64_t no_peer = 0;  // sent to a peer that was not there
  std::uint64_t no_room = 0;  // sent to a peer whose queue was full
  // Arrived when as much was kept as is kept before a receive, or without room for its report.
  std::uint64_t unwanted = 0;
  std::uint64_t lost = 0;  // came to a link that was full, or did not take them
};

// A multicast group that an endpoint joined.
struct Group {
  std::uint64_t number = 0;                      // link::group_number()
  std::unique_ptr<link::Membership> membership;  // null: it receives nothing
  std::unique_ptr<link::Flow> flow;              // null: it sends nothing
};

// An endpoint that exchanges messages with, and accesses memory of, any number of peers, reliably
// and in order per peer (FI_EP_RDM), or exchanges messages that may be lost (FI_EP_DGRAM): what
// finds no receive, no room or no peer is dropped, and nothing of it is reported. Threads as
// EndpointSetup::locking says; to open, close, join, leave and ask for drops are control calls,
// which any thread may make, but none that is inside. progress() is for engine groups of the domain
// and for a device::Stranger, which have come through the gate.
//
// With EndpointSetup::connection it is a connected endpoint (FI_EP_MSG): it has one peer, number 0,
// which open_path() and accept_source() determine. Until then sends answer ENOTCONN and receives
// wait; after disconnect() both answer ESHUTDOWN, sends as soon as the way to the peer is broken,
// but receives still take messages that came before. Of anybody else nothing is let in.
//
// With EndpointSetup::receives it takes from a queue that others take from, too; receives are
// posted there, and each is reported by the endpoint whose message it got.
//
// Calls return 0 when the operation was started (its end is reported as asked), or an errno and
// then nothing was started: EAGAIN (poll, then call again), EINVAL, ENOTCONN, ESHUTDOWN, and if
// silent also what would otherwise have been reported: EHOSTUNREACH, ECONNRESET, EACCES, EFAULT,
// ETIMEDOUT.
class Endpoint final : public device::Engine, link::InboxSink, link::FlowSink {
 public:
  // Makes the endpoint reachable. Errors: those of device::Port::open(), and
  // EINVAL for other addresses than those of endpoints with the same receives.
  static Result<std::unique_ptr<Endpoint>> open(EndpointSetup setup);
  // Closes it, as close() does, and forgets what is pending without reporting it. Where close()
  // would fail, a peer that is stopped may still write into a receive buffer.
  ~Endpoint() override;
  // Takes nothing in any more, so that no peer writes into the buffers of receives afterwards; only
  // what drives the endpoint, and the destructor, may be called then. A shared receive whose
  // message was under way is reported with ECANCELED. Waits up to 2 s for peers that are in the
  // middle of copying into a buffer. Error: EBUSY when one still is. Then the endpoint goes on, and
  // reports those messages with ECANCELED when their copying has ended; close() may be called
  // again.
  Status close();

  int send(SendCall& call);
  // Instead of send(), for the service kDatagram: the message is on its way or dropped when this
  // returns, and its pieces may change. Up to shm::kMaxEager bytes. Never waits for a peer.
  int send_datagram(SendCall& call);
  // The same to all members of a multicast group: call.peer is what join() returned. EINVAL for
  // another number, EACCES when the group was joined for receiving only.
  int send_to_group(SendCall& call);
  // Joins a multicast group, to send to it, to receive from it or both (fi_cm(3)). Errors:
  // EADDRINUSE when it was joined already, others of device::Port::join().
  Result<PeerIndex> join(const os::SocketAddress& group, bool sends, bool receives);
  // Leaves a group that was joined; its number may be given out again.
  void leave(PeerIndex group);
  Drops drops() const;
  // What device::Port::dropped_packets() says.
  std::string dropped_packets() const;
  int access(AccessCall& call);
  int atomic(AtomicCall& call);
  // Reports an operation (SendCall, AccessCall, AtomicCall) that was not started, and never will
  // be, as failed.
  template <class Call>
  void abandon(const Call& call, int error);
  int receive(const ReceiveCall& call) { return queue_.receive(call); }
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
  // Opens the way to `peer`, instead of one that was opened before. An errno, or 0.
  int open_path(const os::SocketAddress& peer);
  // Sends a control message over that way, in order with everything else. An errno, or 0.
  int send_control(std::span<const std::byte> message);
  // Makes `source`, and the end of the way that open_path() opened, the peer: data flow from now
  // on.
  void accept_source(std::uint32_t source);
  // False while the peer cannot be sent to yet: the sink hears when it can.
  bool peer_reached();
  // Listens to that source no more.
  void reject_source(std::uint32_t source);
  // Ends the connection: what is pending, and receives that wait unless they are shared, are
  // reported with `error`.
  void disconnect(int error);
  // Has the next poll call ConnectionSink::parting_is_due(). By then the messages that have come to
  // other endpoints stand in the completion queue, before the receives that end with this
  // connection.
  void part_later() { parting_is_due_ = true; }

  void progress() override;
  bool fall_asleep() override;
  void wake_up() override;
  int wake_fd() const override { return wake_set_.fd(); }
  unsigned polls() override { return polls_.load(std::memory_order_relaxed); }

 private:
  // The way to one number of the address vector.
  struct Peer {
    std::unique_ptr<link::Flow> flow;
    std::uint64_t stamp = 0;  // of the entry that it was opened for
    // When an absent peer counts as unreachable; 0: not tried. For datagrams: the time of the next
    // lookup.
    os::Time give_up{};
    bool died = false;  // the last process at this address, and no other one was found since
  };
  // An operation that is not finished yet.
  struct Pending {
    void* context = nullptr;
    std::uint64_t flags = 0;
    Event event = Event::kSend;
    bool report = true;
    UseOf<device::Counter> counter;  // Report::counter
    bool live = false;
  };

  explicit Endpoint(EndpointSetup setup);

  // The one peer of a connected endpoint (endpoint_connected.cc).
  void control(const link::Arrival& arrival);
  void check_connection();
  void connection_lost(bool died);

  // Ways to peers (endpoint_peers.cc).
  link::Flow* flow_to(PeerIndex peer, int& error) {
    peer &= peer_mask_;
    if (addresses_version_ == setup_.addresses->version() && peer < peers_.size() &&
        peers_[peer].flow != nullptr) [[likely]] {
      return peers_[peer].flow.get();
    }
    return connect(peer, error);
  }
  link::Flow* connect(PeerIndex peer, int& error);
  Status open_way(Peer& peer, const AddressVector::Entry& entry);
  link::Flow* find_successor(PeerIndex peer);
  void follow_addresses();
  void lose(Peer& peer);
  void lose(PeerIndex number, link::PeerState state);
  void check_peers();
  os::Time::duration check_interval() const;
  void watch_processes();
  bool tick();

  // Datagrams (endpoint_datagram.cc).
  link::Flow* look_for(PeerIndex peer, int& error);
  bool hand_over(link::Flow& flow, SendCall& call);
  Group* find_group(PeerIndex peer);
  bool hears(std::uint64_t group) const;
  void datagram(const link::Arrival& arrival);
  void keep_datagram(const link::Arrival& arrival);

  // Sending (endpoint_send.cc).
  template <class Call>
  [[gnu::always_inline]] link::Flow* way_for(const Call& call, int& status);
  template <class Call, class Start>
  [[gnu::always_inline]] link::Outcome attempt(const Call& call, link::Flow*& flow, Start start);
  template <class Call, class Start>
  [[gnu::always_inline]] int start(link::Flow* flow, Call& call, Start begin);
  int fail(const Report& report, std::uint64_t flags, Event event, int error, int detail);
  void wait_for_end(link::Flow& flow);
  void complete(const Report& report, std::uint64_t flags, Event event) {
    if (report.wanted()) push_tx(report.context, flags, 0, 0);
    count(report.counter(), event, true);
  }
  bool may_report(const Report& report) const {
    return setup_.bindings.tx == nullptr || !setup_.bindings.tx->full() || !report.tells_failure();
  }
  void push_tx(void* context, std::uint64_t flags, int error, int detail);
  void ended(void* cookie, int error, int detail) override;

  // Receiving (endpoint_receive.cc).
  friend class ReceiveQueue;
  void source_opened(std::uint32_t source, const os::SocketAddress& address) override;
  void source_closed(std::uint32_t source, bool died) override;
  bool arriving(const link::Arrival& arrival) override;
  void arrived(const link::Arrival& arrival) override;
  unsigned room() const override;
  bool takes_more_urgently() const override;
  void received(void* cookie, int error) override;
  void accessed(std::uint32_t source, Access access, std::span<const RegionKey> regions) override;
  void event(const link::Arrival& arrival);
  void remote_access(const link::Arrival& arrival);
  void withdrawn(const link::Offer& offer) override;
  // These two: false when the sender has withdrawn the message. Then miss() says what becomes of a
  // receive that was posted.
  bool take(Receive& receive, QueuedUnexpected& message);
  void discard(QueuedUnexpected& message);
  void leave_under_way(Receive& receive);
  Status join_queue();
  bool try_to_close();
  void leave_queue();
  // Inlined where they are called: what they hand on stays in registers.
  [[gnu::always_inline]] bool deliver(Receive& receive, const link::Arrival& arrival,
                                      const MatchInfo& taken);
  void miss(Receive& receive, bool tagged);
  [[gnu::always_inline]] void finish(Receive& receive, const MatchInfo& taken, int error);
  void fail_receive(Receive& receive, bool tagged, int error);
  void settle_deaths();
  void fail_waiting(PeerIndex source, int error);
  void report_peek(const ReceiveCall& call, const QueuedUnexpected* message, int error);
  // Counts in the counter of an operation's own, if it has one.
  void count(device::Counter* counter, Event event, bool success) {
    if (counter == nullptr) counter = setup_.bindings.counter(event);
    if (counter == nullptr) return;
    if (success) {
      counter->add(1);
    } else {
      counter->add_errors(1);
    }
  }

  void progress_locked();

  const EndpointSetup setup_;
  std::unique_ptr<ReceiveQueue> own_queue_;  // null when it is shared
  ReceiveQueue& queue_;
  OptionalLock& lock_;  // of the queue: one thread at a time in all endpoints that share it
  std::unique_ptr<device::Port> port_;
  std::vector<Peer> peers_;    // by number
  const PeerIndex peer_mask_;  // 0 for a connected endpoint: whatever its callers say, it is peer 0
  std::uint64_t addresses_version_ = 0;
  std::vector<link::Flow*> busy_;  // with sends pending
  Pool<Pending> pending_;
  Pending* next_pending_ = nullptr;                     // for the next call that stays pending
  std::vector<std::shared_ptr<RemoteSender>> sources_;  // by the inbox's number
  std::vector<PeerIndex> died_;                         // peers whose end has not been acted upon
  std::size_t takes_under_way_ = 0;                     // how many the next one has
  Receives under_way_;                                  // matched, by messages that take a while
  std::vector<std::unique_ptr<Group>> groups_;          // in the order of their numbers; null: free
  Drops drops_;
  os::EventSet wake_set_;
  std::unordered_map<int, os::Fd> watched_;  // processes whose end wakes this endpoint
  // Of a connected endpoint.
  std::unique_ptr<link::Flow> facing_;         // to a peer that is not admitted yet
  std::shared_ptr<RemoteSender> peer_source_;  // the admitted source
  bool awaits_peer_ = false;                   // that has been admitted and is not reached yet
  int ended_ = 0;                              // what posts answer since disconnect(), or 0
  int parting_error_ = ECONNRESET;  // what sends that disconnect() ends are reported with
  bool closing_ = false;            // takes nothing in
  bool parting_is_due_ = false;     // in the next poll
  int sleepers_ = 0;
  std::atomic<unsigned> polls_{0};
  os::Time next_check_{};
};

}  // namespace weft::messaging
