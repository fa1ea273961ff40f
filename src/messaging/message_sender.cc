// SPDX-License-Identifier: BSD-2-Clause
// How does an endpoint start operations, and how does it report their ends?
#include "messaging/message_sender.h"

#include <cerrno>
#include <utility>

#include "device/provider_error.h"
#include "device/refusals.h"
#include "memory/access_guard.h"
#include "messaging/peer_flows.h"

namespace weft::messaging {
namespace {

std::uint64_t flags_of(const SendCall& call) {
  return device::kSend |
         (call.operation == link::MessageOperation::kTagged ? device::kTagged : device::kMessage);
}

std::uint64_t flags_of(const AccessCall& call) {
  return device::kRma | (call.write ? device::kWrite : device::kRead);
}

std::uint64_t flags_of(const AtomicCall& call) {
  return device::kAtomic | (call.action.fetches() ? device::kRead : device::kWrite);
}

CounterEvent event_of(const SendCall&) { return CounterEvent::kSend; }

CounterEvent event_of(const AccessCall& call) {
  return call.write ? CounterEvent::kWrite : CounterEvent::kRead;
}

CounterEvent event_of(const AtomicCall& call) {
  return call.action.fetches() ? CounterEvent::kRead : CounterEvent::kWrite;
}

std::span<const RemoteRange> ranges_of(const SendCall&) { return {}; }
std::span<const RemoteRange> ranges_of(const AccessCall& call) { return call.remote; }
std::span<const RemoteRange> ranges_of(const AtomicCall& call) { return call.remote; }

// True for what a call answers without having started anything.
bool is_answer(int error) {
  return error == EAGAIN || error == kPollThenAgain || error == EINVAL || error == ENOTCONN ||
         error == ESHUTDOWN;
}

// Different authorization keys of endpoints are reported as those of regions are.
void name_refusal(int& error, int& detail) {
  if (error != link::kOtherAuthorization) return;
  error = EACCES;
  detail = static_cast<int>(memory::AccessError::kOtherAuthorization);
}

}  // namespace

MessageSender::MessageSender(const EndpointSetup& setup, OptionalLock& lock, PeerFlows& flows,
                             Sleepers& sleepers, Stats& stats)
    : bindings_(setup.bindings),
      lock_(lock),
      flows_(flows),
      sleepers_(sleepers),
      stats_(stats),
      context_(setup.transmit_room, setup.bindings.tx) {}

std::size_t MessageSender::room() {
  const Section section(lock_);
  return context_.room();
}

void MessageSender::note(std::uint64_t flags, const RefusedAccess& refused) {
  stats_.add(device::refusal_counter(refused.reason));
  const bool by_target = refused.reason <= static_cast<int>(memory::kLastAccessError);
  device::refusal_log().own([&] {
    return (by_target ? "refused by the target: " : "refused: ") + device::explain(flags, refused);
  });
}

void MessageSender::push(void* context, std::uint64_t flags, int error,
                         const RefusedAccess* refused) {
  if (bindings_.tx == nullptr) return;
  bindings_.tx->push([&](device::Completion& completion) {
    context_.report();
    completion = {};
    completion.context = context;
    completion.flags = flags;
    if (error != 0) [[unlikely]]
      refused != nullptr ? completion.refuse(error, *refused) : completion.end(error, 0);
  });
}

int MessageSender::fail(const Report& report, std::uint64_t flags, CounterEvent event, int error,
                        const RefusedAccess* refused) {
  if (refused != nullptr) note(flags, *refused);
  if (report.silent()) return error;
  if (report.reports_failure()) push(report.context, flags, error, refused);
  bindings_.count(report.counter(), event, false);
  return 0;
}

template <class Call>
int MessageSender::fail(const Call& call, int error) {
  RefusedAccess refused = refused_of(0, ranges_of(call));
  name_refusal(error, refused.reason);
  return fail(call.report, flags_of(call), event_of(call), error,
              refused.reason != 0 ? &refused : nullptr);
}

template <class Call>
void MessageSender::abandon(const Call& call, int error) {
  const Section section(lock_);
  fail(call, error);
}

template void MessageSender::abandon(const SendCall& call, int error);
template void MessageSender::abandon(const AccessCall& call, int error);
template void MessageSender::abandon(const AtomicCall& call, int error);

template <class Call>
int MessageSender::refuse(const Call& call, const RefusedAccess& refused) {
  const Section section(lock_);
  if (!may_start(call.report)) return kPollThenAgain;
  return fail(call.report, flags_of(call), event_of(call), EACCES, &refused);
}

template int MessageSender::refuse(const SendCall& call, const RefusedAccess& refused);
template int MessageSender::refuse(const AccessCall& call, const RefusedAccess& refused);
template int MessageSender::refuse(const AtomicCall& call, const RefusedAccess& refused);

template <class Call>
[[gnu::cold, gnu::noinline]] int MessageSender::fail_at_once(const Call& call,
                                                             const link::Flow* flow,
                                                             const link::Outcome& outcome) {
  if (outcome.detail == 0) return fail(call, outcome.error);
  const RefusedAccess refused = flow->refused(outcome.detail, ranges_of(call));
  return fail(call.report, flags_of(call), event_of(call), outcome.error, &refused);
}

// The flow to the peer of a call, if it may start now; else null, and `status` is its answer.
template <class Call>
inline link::Flow* MessageSender::flow_for(const Call& call, int& status) {
  status = EAGAIN;
  if (!may_report(call.report)) return nullptr;
  if (context_.full(call.report.reports_failure())) [[unlikely]] {
    status = kPollThenAgain;
    return nullptr;
  }
  link::Flow* flow = flows_.find(call.peer, status);
  if (flow == nullptr) {
    if (!is_answer(status)) {
      status = fail(call, status);
    }
    return nullptr;
  }
  if (call.fence && flow->busy()) return nullptr;
  return flow;
}

// Starts an operation on the flow to its peer. The endpoint that was there may have been closed,
// and another one may have taken its address: then the operation, of which nothing was done, is for
// that one.
template <class Call, class Start>
inline link::Outcome MessageSender::attempt(const Call& call, link::Flow*& flow, Start start) {
  const link::Outcome outcome = start(*flow);
  const bool lost = outcome.state == link::Outcome::State::kFailed && outcome.error == ECONNRESET;
  if (!lost) [[likely]]
    return outcome;
  flow = flows_.find_successor(call.peer);
  return flow == nullptr ? outcome : start(*flow);
}

// The cookie is needed only if the operation stays pending: the next one will take it otherwise.
template <class Call, class Start>
inline int MessageSender::start(link::Flow* flow, Call& call, Start begin) {
  if (next_pending_ == nullptr) next_pending_ = &pending_.take();
  call.cookie = next_pending_;
  const link::Outcome outcome = attempt(call, flow, begin);
  if (outcome.state == link::Outcome::State::kDone) [[likely]] {
    if (call.staging != nullptr) [[unlikely]] {
      if (const int error = call.staging->finish(); error != 0) return fail(call, error);
    }
    complete(call.report, flags_of(call), event_of(call));
    return 0;
  }
  if (outcome.state == link::Outcome::State::kFailed) return fail_at_once(call, flow, outcome);
  if (outcome.state != link::Outcome::State::kPending) return kPollThenAgain;  // no room now
  PendingOperation& pending = *std::exchange(next_pending_, nullptr);
  pending.context = call.report.context;
  pending.flags = static_cast<std::uint16_t>(flags_of(call));
  pending.event = event_of(call);
  pending.report = call.report.wanted();
  pending.counter = use_of(call.report.counter());
  pending.staging = call.staging;
  pending.live = true;
  context_.begin();
  const std::span<const RemoteRange> ranges = ranges_of(call);
  pending.ranges = static_cast<std::uint8_t>(ranges.size());
  if (!ranges.empty()) pending.first = ranges[0];
  flows_.add_busy(*flow);
  if (sleepers_.count() > 0) wait_for_end(*flow);
  return 0;
}

int MessageSender::send(SendCall& call) {
  const Section section(lock_);
  int status = 0;
  link::Flow* flow = flow_for(call, status);
  if (flow == nullptr) return status;
  return start(flow, call, [&](link::Flow& to) { return to.send(call); });
}

int MessageSender::access(AccessCall& call) {
  const Section section(lock_);
  int status = 0;
  link::Flow* flow = flow_for(call, status);
  if (flow == nullptr) return status;
  return start(flow, call, [&](link::Flow& to) { return to.access(call); });
}

int MessageSender::atomic(AtomicCall& call) {
  const Section section(lock_);
  int status = 0;
  link::Flow* flow = flow_for(call, status);
  if (flow == nullptr) return status;
  return start(flow, call, [&](link::Flow& to) { return to.atomic(call); });
}

int MessageSender::cancel(void* context) {
  const Section section(lock_);
  const PendingOperation* found = pending_.find([&](PendingOperation& pending) {
    return pending.live && pending.context == context && pending.event == CounterEvent::kSend &&
           flows_.cancel(&pending);
  });
  return found != nullptr ? 0 : ENOENT;
}

// Another thread sleeps already: the peer must ring for this operation, too.
void MessageSender::wait_for_end(link::Flow& flow) {
  flow.set_asleep(true);
  std::atomic_thread_fence(std::memory_order_seq_cst);
  if (flow.ready()) flow.progress(*this);
}

[[gnu::cold, gnu::noinline]] void MessageSender::end_refused(const PendingOperation& pending,
                                                             int error, int reason, bool reports) {
  const RefusedAccess refused{.reason = reason, .ranges = pending.ranges, .range = pending.first};
  note(pending.flags, refused);
  if (reports) push(pending.context, pending.flags, error, &refused);
}

void MessageSender::ended(void* cookie, int error, int detail) {
  PendingOperation& pending = *static_cast<PendingOperation*>(cookie);
  if (error == ECONNRESET) error = loss_;
  name_refusal(error, detail);
  if (pending.staging != nullptr) [[unlikely]] {
    if (error == 0) error = pending.staging->finish();
    pending.staging.reset();
  }
  const bool reports = pending.report || (error != 0 && !pending.counter);
  if (detail != 0) [[unlikely]] {
    end_refused(pending, error, detail, reports);
  } else if (reports) {
    push(pending.context, pending.flags, error);
  }
  bindings_.count(pending.counter.get(), pending.event, error == 0);
  pending.counter = {};
  pending.live = false;
  context_.end();
  pending_.give(pending);
}

}  // namespace weft::messaging
