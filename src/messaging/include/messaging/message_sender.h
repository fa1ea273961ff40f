// SPDX-License-Identifier: BSD-2-Clause
// How does an endpoint start operations, and how does it report their ends?
#pragma once

#include "base/refused_access.h"
#include "base/stats.h"
#include "device/counter.h"
#include "link/flow.h"
#include "messaging/calls.h"
#include "messaging/endpoint_setup.h"
#include "messaging/pool.h"
#include "messaging/sleepers.h"
#include "messaging/transmit_context.h"
#include "os/optional_lock.h"

namespace weft::messaging {

class PeerFlows;

// Starts reliable messages, accesses and atomic operations on the flows to their peers, and reports
// the end of each one. send(), access(), atomic(), abandon(), refuse() and cancel() take the lock;
// the other functions need it.
class MessageSender final : public link::FlowSink {
 public:
  // Everything outlives the sender. The table may be constructed later. `stats` are those of the
  // port.
  MessageSender(const EndpointSetup& setup, OptionalLock& lock, PeerFlows& flows,
                Sleepers& sleepers, Stats& stats);

  // As the functions of Endpoint, or kPollThenAgain.
  int send(SendCall& call);
  int access(AccessCall& call);
  int atomic(AtomicCall& call);
  // As Endpoint::abandon().
  template <class Call>
  void abandon(const Call& call, int error);
  // As Endpoint::refuse().
  template <class Call>
  int refuse(const Call& call, const RefusedAccess& refused);
  // Ends a send of which no byte has been delivered, with ECANCELED; ENOENT without one.
  int cancel(void* context);

  // False while the completion queue has no room for the end of an operation, or the endpoint holds
  // as many as it may.
  bool may_start(const Report& report) {
    return may_report(report) && !context_.full(report.reports_failure());
  }
  // As Endpoint::transmit_room().
  std::size_t room();
  // Reports an operation that has succeeded.
  void complete(const Report& report, std::uint64_t flags, CounterEvent event) {
    if (report.wanted()) push(report.context, flags, 0);
    bindings_.count(report.counter(), event, true);
  }
  // Reports an operation that has failed at once. It was started and has ended, so its error
  // completes through the queue (0). An injected one has no completion: its caller gets the error.
  // A refused access says what it was: `refused`, if that is not null, which is logged and counted.
  int fail(const Report& report, std::uint64_t flags, CounterEvent event, int error,
           const RefusedAccess* refused = nullptr);
  // The same for a call; an error of its flow may be a refusal.
  template <class Call>
  int fail(const Call& call, int error);
  // What sends are reported with that end because their flow is given up: ECONNRESET, if not this.
  void report_losses_as(int error) { loss_ = error; }

 private:
  bool may_report(const Report& report) const {
    return bindings_.tx == nullptr || !bindings_.tx->full() || !report.reports_failure();
  }

  // An operation that is not finished yet.
  struct PendingOperation {
    void* context = nullptr;
    UseOf<device::Counter> counter;  // Report::counter
    StagingPtr staging;
    RemoteRange first;        // range of an access
    std::uint16_t flags = 0;  // CompletionFlags: those of transmissions fit
    CounterEvent event = CounterEvent::kSend;
    bool report = true;
    bool live = false;
    std::uint8_t ranges = 0;  // of an access
  };
  static_assert(sizeof(PendingOperation) <= 56);  // idle connections keep one, too

  template <class Call>
  [[gnu::always_inline]] link::Flow* flow_for(const Call& call, int& status);
  template <class Call, class Start>
  [[gnu::always_inline]] link::Outcome attempt(const Call& call, link::Flow*& flow, Start start);
  template <class Call, class Start>
  [[gnu::always_inline]] int start(link::Flow* flow, Call& call, Start begin);
  void wait_for_end(link::Flow& flow);
  template <class Call>
  int fail_at_once(const Call& call, const link::Flow* flow, const link::Outcome& outcome);
  void end_refused(const PendingOperation& pending, int error, int reason, bool reports);
  void note(std::uint64_t flags, const RefusedAccess& refused);
  void push(void* context, std::uint64_t flags, int error, const RefusedAccess* refused = nullptr);
  void ended(void* cookie, int error, int detail) override;

  const Bindings bindings_;
  OptionalLock& lock_;
  PeerFlows& flows_;
  Sleepers& sleepers_;
  Stats& stats_;
  TransmitContext context_;
  Pool<PendingOperation> pending_;
  PendingOperation* next_pending_ = nullptr;  // for the next call that stays pending
  int loss_ = ECONNRESET;
};

}  // namespace weft::messaging
