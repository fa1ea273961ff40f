// SPDX-License-Identifier: BSD-2-Clause
// How does an endpoint send messages and access memory, and how does it report the end?
#include <algorithm>
#include <utility>

#include "messaging/endpoint.h"

namespace weft::messaging {
namespace {

std::uint64_t flags_of(const SendCall& call) {
  return device::kSend |
         (call.operation == link::Operation::kTagged ? device::kTagged : device::kMessage);
}

std::uint64_t flags_of(const AccessCall& call) {
  return device::kRma | (call.write ? device::kWrite : device::kRead);
}

std::uint64_t flags_of(const AtomicCall& call) {
  return device::kAtomic | (call.action.fetches() ? device::kRead : device::kWrite);
}

Event event_of(const SendCall&) { return Event::kSend; }

Event event_of(const AccessCall& call) { return call.write ? Event::kWrite : Event::kRead; }

Event event_of(const AtomicCall& call) {
  return call.action.fetches() ? Event::kRead : Event::kWrite;
}

// True for what a call answers without having started anything.
bool is_answer(int error) {
  return error == EAGAIN || error == EINVAL || error == ENOTCONN || error == ESHUTDOWN;
}

}  // namespace

void Endpoint::push_tx(void* context, std::uint64_t flags, int error, int detail) {
  if (setup_.bindings.tx == nullptr) return;
  setup_.bindings.tx->push([&](device::Completion& completion) {
    completion = {};
    completion.context = context;
    completion.flags = flags;
    if (error != 0) [[unlikely]]
      completion.end(error, detail);
  });
}

// An operation that fails at once was started and has ended: its error goes where errors go. An
// injected one has no place in the queue, so its caller hears of it.
int Endpoint::fail(const Report& report, std::uint64_t flags, Event event, int error, int detail) {
  if (report.silent()) return error;
  if (report.tells_failure()) push_tx(report.context, flags, error, detail);
  count(report.counter(), event, false);
  return 0;
}

template <class Call>
void Endpoint::abandon(const Call& call, int error) {
  const Section section(lock_);
  fail(call.report, flags_of(call), event_of(call), error, 0);
}

template void Endpoint::abandon(const SendCall& call, int error);
template void Endpoint::abandon(const AccessCall& call, int error);
template void Endpoint::abandon(const AtomicCall& call, int error);

// The way to the peer of a call, if it may start now; else null, and `status` is its answer.
template <class Call>
inline link::Flow* Endpoint::way_for(const Call& call, int& status) {
  status = EAGAIN;
  if (!may_report(call.report)) return nullptr;
  link::Flow* flow = flow_to(call.peer, status);
  if (flow == nullptr) {
    if (!is_answer(status)) {
      status = fail(call.report, flags_of(call), event_of(call), status, 0);
    }
    return nullptr;
  }
  if (call.fence && flow->busy()) return nullptr;
  return flow;
}

// Starts an operation on the way to its peer. The endpoint that was there may have been closed, and
// another one may have taken its address: then the operation, of which nothing was done, is for
// that.
template <class Call, class Start>
inline link::Outcome Endpoint::attempt(const Call& call, link::Flow*& flow, Start start) {
  const link::Outcome outcome = start(*flow);
  const bool lost = outcome.state == link::Outcome::State::kFailed && outcome.error == ECONNRESET;
  if (!lost) [[likely]]
    return outcome;
  const link::PeerState state = flow->check_peer(*this);
  lose(call.peer & peer_mask_, state);
  flow = state == link::PeerState::kRefuses ? nullptr : find_successor(call.peer);
  return flow == nullptr ? outcome : start(*flow);
}

// The cookie is needed only if the operation stays pending: the next one will take it otherwise.
template <class Call, class Start>
inline int Endpoint::start(link::Flow* flow, Call& call, Start begin) {
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
  if (outcome.state != link::Outcome::State::kPending) {  // no room now
    progress_locked();
    return EAGAIN;
  }
  *std::exchange(next_pending_, nullptr) = {call.report.context,
                                            flags_of(call),
                                            event_of(call),
                                            call.report.wanted(),
                                            use_of(call.report.counter()),
                                            true};
  if (std::find(busy_.begin(), busy_.end(), flow) == busy_.end()) busy_.push_back(flow);
  if (sleepers_ > 0) wait_for_end(*flow);
  return 0;
}

int Endpoint::send(SendCall& call) {
  const Section section(lock_);
  int status = 0;
  link::Flow* flow = way_for(call, status);
  if (flow == nullptr) return status;
  return start(flow, call, [&](link::Flow& way) { return way.send(call); });
}

int Endpoint::access(AccessCall& call) {
  const Section section(lock_);
  int status = 0;
  link::Flow* flow = way_for(call, status);
  if (flow == nullptr) return status;
  return start(flow, call, [&](link::Flow& way) { return way.access(call); });
}

int Endpoint::atomic(AtomicCall& call) {
  const Section section(lock_);
  int status = 0;
  link::Flow* flow = way_for(call, status);
  if (flow == nullptr) return status;
  return start(flow, call, [&](link::Flow& way) { return way.atomic(call); });
}

int Endpoint::cancel(void* context) {
  if (queue_.cancel(context) == 0) return 0;
  const Section section(lock_);
  const Pending* found = pending_.find([&](Pending& pending) {
    return pending.live && pending.context == context && pending.event == Event::kSend &&
           std::any_of(busy_.begin(), busy_.end(),
                       [&](link::Flow* flow) { return flow->cancel(&pending, *this); });
  });
  return found != nullptr ? 0 : ENOENT;
}

// Another thread sleeps already: the peer must ring for this operation, too.
void Endpoint::wait_for_end(link::Flow& flow) {
  flow.set_asleep(true);
  std::atomic_thread_fence(std::memory_order_seq_cst);
  if (flow.ready()) flow.progress(*this);
}

void Endpoint::ended(void* cookie, int error, int detail) {
  Pending& pending = *static_cast<Pending*>(cookie);
  if (error == ECONNRESET) error = parting_error_;
  if (pending.report || (error != 0 && !pending.counter)) {
    push_tx(pending.context, pending.flags, error, detail);
  }
  count(pending.counter.get(), pending.event, error == 0);
  pending.counter = {};
  pending.live = false;
  pending_.give(pending);
}

}  // namespace weft::messaging
