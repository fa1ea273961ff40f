// SPDX-License-Identifier: BSD-2-Clause
// What is a reliable-datagram endpoint?
#pragma once

#include <array>
#include <memory>
#include <span>
#include <unordered_map>
#include <vector>

#include "base/optional_lock.h"
#include "device/completion_queue.h"
#include "device/counter.h"
#include "device/port.h"
#include "messaging/address_vector.h"
#include "messaging/matcher.h"
#include "messaging/options.h"
#include "messaging/pool.h"
#include "os/clock.h"

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

// What an endpoint is made of; all pointers outlive it.
struct EndpointSetup {
  std::shared_ptr<device::Device> device;
  AddressVector* addresses = nullptr;
  Bindings bindings;
  os::SocketAddress address;  // that was bound
  os::SocketAddress name;     // by which peers know it: the same, unless that was a wildcard
  DomainId domain;
  bool thread_safe = true;
  bool count_remote_reads = false;
  bool count_remote_writes = false;
  Options options;
};

// How an operation that is started reports its end.
struct Report {
  void* context = nullptr;
  bool wanted = true;   // an entry in the queue even when it succeeds
  bool silent = false;  // never an entry, not even for a failure: failures are returned (inject)
};

// A message to send, and the peer it goes to. Pieces must stay unchanged until the end is reported,
// unless must_copy is set, with which the length may be no more than shm::kMaxEager. The cookie is
// the endpoint's.
struct SendCall : link::SendRequest {
  PeerIndex peer = kNoPeer;
  bool fence = false;
  Report report;
};

// An access to a peer's memory.
struct AccessCall : link::AccessRequest {
  PeerIndex peer = kNoPeer;
  bool fence = false;
  Report report;
};

// A receive, or a look at what has come (fi_tagged(3): FI_PEEK, FI_CLAIM, FI_DISCARD).
struct ReceiveCall {
  enum class Mode { kPost, kPeek, kPeekClaim, kPeekDiscard, kTakeClaimed, kDiscardClaimed };
  bool tagged = false;
  Mode mode = Mode::kPost;
  std::uint64_t tag = 0;
  std::uint64_t ignore = 0;
  PeerIndex source = kNoPeer;
  std::span<const LocalRange> pieces;
  // With kPost: the buffer, of one piece, takes messages until less than `least` bytes are left;
  // the completion that gives it back has kMultiReceive (fi_msg(3), FI_MULTI_RECV).
  bool multi = false;
  std::size_t least = 0;
  Report report;
};

// An endpoint that exchanges messages with, and accesses memory of, any number of peers, reliably
// and in order per peer (FI_EP_RDM). Any thread, if EndpointSetup::thread_safe; else one at a time.
//
// Calls return 0 when the operation was started (its end is reported as asked), or an errno and
// then nothing was started: EAGAIN (poll, then call again), EINVAL, and if silent also what would
// otherwise have been reported: EHOSTUNREACH, ECONNRESET, EACCES, EFAULT.
class Endpoint final : public device::Engine, link::InboxSink, link::FlowSink {
 public:
  // Makes the endpoint reachable. Errors: those of device::Port::open().
  static Result<std::unique_ptr<Endpoint>> open(EndpointSetup setup);
  // Takes nothing in any more and forgets what is pending without reporting it.
  ~Endpoint() override;

  int send(SendCall& call);
  int access(const AccessCall& call);
  int receive(const ReceiveCall& call);
  // Ends a posted receive with ECANCELED; ENOENT when none has that context (fi_cancel(3)).
  int cancel(void* context);

  void progress() override;
  bool fall_asleep() override;
  void wake_up() override;
  int wake_fd() const override { return wake_set_.fd(); }
  unsigned polls() override;

 private:
  // The way to one number of the address vector.
  struct Peer {
    std::unique_ptr<link::Flow> flow;
    std::uint64_t stamp = 0;  // of the entry that it was opened for
    os::Time give_up{};       // when a peer that is not there counts as unreachable; 0: not tried
  };
  // A send that is not finished yet.
  struct Sending {
    void* context = nullptr;
    std::uint64_t flags = 0;
    bool report = true;
  };

  explicit Endpoint(EndpointSetup setup);

  // Ways to peers (endpoint_peers.cc).
  link::Flow* flow_to(PeerIndex peer, int& error) {
    if (addresses_version_ == setup_.addresses->version() && peer < peers_.size() &&
        peers_[peer].flow != nullptr) [[likely]] {
      return peers_[peer].flow.get();
    }
    return connect(peer, error);
  }
  link::Flow* connect(PeerIndex peer, int& error);
  void follow_addresses();
  void lose(Peer& peer);
  void check_peers();
  void watch_processes();
  bool tick();

  // Sending (endpoint_send.cc).
  [[gnu::always_inline]] int start_send(link::Flow& flow, SendCall& call);
  int fail(const Report& report, std::uint64_t flags, Event event, int error, int detail);
  void wait_for_end(link::Flow& flow);
  void complete(const Report& report, std::uint64_t flags, Event event) {
    if (report.wanted && !report.silent) push_tx(report.context, flags, 0, 0);
    count(event, true);
  }
  void push_tx(void* context, std::uint64_t flags, int error, int detail);
  void sent(void* cookie, int error) override;

  // Receiving (endpoint_receive.cc).
  Matcher& matcher(bool tagged) { return tagged ? tagged_ : untagged_; }
  void source_opened(std::uint32_t source, const os::SocketAddress& address) override;
  void source_closed(std::uint32_t source, bool died) override;
  void arrived(const link::Arrival& arrival) override;
  bool takes_more() const override;
  void received(void* cookie, int error) override;
  void remote_access(const link::Arrival& arrival);
  int post(const ReceiveCall& call);
  void post_multi(Receive& receive);
  int peek(const ReceiveCall& call);
  int take_claimed(const ReceiveCall& call);
  Receive& new_receive(const ReceiveCall& call);
  void take(Receive& receive, Unexpected& message);
  void discard(Unexpected& message, bool tagged);
  // Inlined where they are called: what they hand on stays in registers.
  [[gnu::always_inline]] void deliver(Receive& receive, const link::Arrival& arrival,
                                      PeerIndex sender);
  [[gnu::always_inline]] void finish(Receive& receive, const Taken& taken, int error);
  void fail_receive(Receive& receive, bool tagged, int error);
  Receive& part_of(Receive& whole, std::uint64_t length);
  bool leave_whole(Receive& part);
  void settle_deaths();
  void fail_directed(PeerIndex source);
  void report_peek(const ReceiveCall& call, const Unexpected* message, int error);
  void count(Event event, bool success) {
    device::Counter* counter = setup_.bindings.counter(event);
    if (counter == nullptr) return;
    if (success) {
      counter->add(1);
    } else {
      counter->add_errors(1);
    }
  }

  void progress_locked();

  OptionalLock lock_;
  const EndpointSetup setup_;
  std::unique_ptr<device::Port> port_;
  std::vector<Peer> peers_;  // by number
  std::uint64_t addresses_version_ = 0;
  std::vector<link::Flow*> busy_;  // with sends pending
  Pool<Sending> sendings_;
  Sending* next_sending_ = nullptr;                      // for the next send that stays pending
  std::vector<std::shared_ptr<Correspondent>> sources_;  // by the inbox's number
  std::vector<PeerIndex> died_;                          // peers whose end has not been acted upon
  Matcher tagged_;
  Matcher untagged_;
  Pool<Receive> receives_;
  os::EventSet wake_set_;
  std::unordered_map<int, os::Fd> watched_;  // processes whose end wakes this endpoint
  int sleepers_ = 0;
  unsigned polls_ = 0;
  os::Time next_check_{};
};

}  // namespace weft::messaging
