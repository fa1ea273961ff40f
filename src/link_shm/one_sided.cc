// SPDX-License-Identifier: BSD-2-Clause
// How does an initiator choose between reaching into another process and asking that process?
#include "link_shm/one_sided.h"

#include <cerrno>
#include <chrono>

#include "link/local_buffers.h"
#include "os/clock.h"

namespace weft::shm {

using link::Outcome;

OneSided::OneSided(PeerSlot& slot, RingWriter& ring)
    : slot_(slot), ring_(ring), direct_(slot, ring), assisted_(slot, ring) {}

// Why no access may start now: an errno, or 0. The owner may have gone, and its process id may mean
// another process by now.
int OneSided::unusable() {
  if (!slot_.owner().confirmed()) ring_.set_gone();
  if (ring_.gone()) return ECONNRESET;
  return assisted_.unanswered() ? ETIMEDOUT : 0;
}

template <class Request>
Outcome OneSided::by_faster_method(const Request& request, AdaptiveChoice& choice) {
  using Answer = AssistedRequests::Answer;
  const bool asks = choice.choose() == AdaptiveChoice::Method::kSecond;
  const bool timed = choice.timed();
  const auto begin = timed ? std::chrono::steady_clock::now() : os::Time{};
  const Answer answer = asks ? assisted_.ask(request) : Answer::kNotDone;
  if (answer == Answer::kUnknown) return Outcome::failed(ETIMEDOUT);
  if (answer == Answer::kFault) return Outcome::failed(EFAULT);
  const bool done = answer == Answer::kDone;
  const Outcome outcome = done ? Outcome::done() : direct_.carry_out(request);
  if (asks && !done) {
    choice.second_failed();
  } else if (timed) {
    choice.took(std::chrono::steady_clock::now() - begin);
  }
  return outcome;
}

template <class Request>
Outcome OneSided::carry_out(const Request& request, std::size_t most_assisted,
                            AdaptiveChoice& choice, std::uint32_t kind,
                            link::MessageOperation event, link::MessageOperation with_data) {
  const std::uint32_t counted = slot_.mailbox().counts_access.load(std::memory_order_relaxed);
  const bool announces = (counted & kind) != 0 || request.has_data;
  if (announces && !ring_.room_for(1)) return Outcome::again();
  const Outcome outcome = assisted_.fits(request.remote, most_assisted, announces ? 1 : 0)
                              ? by_faster_method(request, choice)
                              : direct_.carry_out(request);
  if (announces && outcome.state == Outcome::State::kDone) {
    link::SendRequest note;
    note.operation = request.has_data ? with_data : event;
    note.has_data = request.has_data;
    note.data = request.data;
    note.tag = request.length;
    ring_.publish(note, CellKind::kInline);
  }
  return outcome;
}

Outcome OneSided::access(const link::AccessRequest& request) {
  using enum link::MessageOperation;
  if (const int error = unusable()) return Outcome::failed(error);
  return carry_out(request, kAssistedBytes, choice_, request.write ? kCountsWrites : kCountsReads,
                   request.write ? kWriteEvent : kReadEvent, kWriteData);
}

Outcome OneSided::atomic(const link::AtomicRequest& request) {
  using enum link::MessageOperation;
  if (const int error = unusable()) return Outcome::failed(error);
  if (!link::buffers_mapped(request)) return Outcome::failed(EFAULT);
  const bool fetches = request.action.fetches();
  return carry_out(request, kAtomicAssistedBytes, atomic_choice_,
                   fetches ? kCountsReads : kCountsWrites, fetches ? kReadEvent : kWriteEvent,
                   fetches ? kAtomicReadData : kAtomicWriteData);
}

}  // namespace weft::shm
