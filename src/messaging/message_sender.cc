// SPDX-License-Identifier: BSD-2-Clause
// How does an endpoint start operations, and how does it report their ends?
#include "messaging/message_sender.h"

#include <utility>

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

// True for what a call answers without having started anything.
bool is_answer(int error) {
  return error == EAGAIN || error == kPollThenAgain || error == EINVAL || error == ENOTCONN ||
         error == ESHUTDOWN;
}

}  // namespace

MessageSender::MessageSender(const EndpointSetup& setup, OptionalLock& lock, PeerFlows& flows,
                             Sleepers& sleepers)
    : bindings_(setup.bindings), lock_(lock), flows_(flows), sleepers_(sleepers) {}

void MessageSender::push(void* context, std::uint64_t flags, int error, int detail) {
  if (bindings_.tx == nullptr) return;
  bindings_.tx->push([&](device::Completion& completion) {
    completion = {};
    completion.context = context;
    completion.flags = flags;
    if (error != 0) [[unlikely]]
      completion.end(error, detail);
  });
}

int MessageSender::fail(const Report& report, std::uint64_t flags, CounterEvent event, int error,
                        int detail) {
  if (report.silent()) return error;
  if (report.reports_failure()) push(report.context, flags, error, detail);
  bindings_.count(report.counter(), event, false);
  return 0;
}

template <class Call>
void MessageSender::abandon(const Call& call, int error) {
  const Section section(lock_);
  fail(call.report, flags_of(call), event_of(call), error, 0);
}

template void MessageSender::abandon(const SendCall& call, int error);
template void MessageSender::abandon(const AccessCall& call, int error);
template void MessageSender::abandon(const AtomicCall& call, int error);

template <class Call>
int MessageSender::refuse(const Call& call, int error, int reason) {
  const Section section(lock_);
  if (!may_report(call.report)) return EAGAIN;
  return fail(call.report, flags_of(call), event_of(call), error, reason);
}

template int MessageSender::refuse(const SendCall& call, int error, int reason);
template int MessageSender::refuse(const AccessCall& call, int error, int reason);
template int MessageSender::refuse(const AtomicCall& call, int error, int reason);

// The flow to the peer of a call, if it may start now; else null, and `status` is its answer.
template <class Call>
inline link::Flow* MessageSender::flow_for(const Call& call, int& status) {
  status = EAGAIN;
  if (!may_report(call.report)) return nullptr;
  link::Flow* flow = flows_.find(call.peer, status);
  if (flow == nullptr) {
    if (!is_answer(status)) {
      status = fail(call.report, flags_of(call), event_of(call), status, 0);
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
    complete(call.report, flags_of(call), event_of(call));
    return 0;
  }
  if (outcome.state == link::Outcome::State::kFailed) {
    return fail(call.report, flags_of(call), event_of(call), outcome.error, outcome.detail);
  }
  if (outcome.state != link::Outcome::State::kPending) return kPollThenAgain;  // no room now
  *std::exchange(next_pending_, nullptr) = {call.report.context,
                                            flags_of(call),
                                            event_of(call),
                                            call.report.wanted(),
                                            use_of(call.report.counter()),
                                            true};
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

void MessageSender::ended(void* cookie, int error, int detail) {
  PendingOperation& pending = *static_cast<PendingOperation*>(cookie);
  if (error == ECONNRESET) error = loss_;
  if (pending.report || (error != 0 && !pending.counter)) {
    push(pending.context, pending.flags, error, detail);
  }
  bindings_.count(pending.counter.get(), pending.event, error == 0);
  pending.counter = {};
  pending.live = false;
  pending_.give(pending);
}

}  // namespace weft::messaging
