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
Outcome OneSided::by_faster_method(AdaptiveChoice& ways, const Request& request) {
  using Answer = AssistedRequests::Answer;
  const bool asks = ways.choose() == AdaptiveChoice::Method::kSecond;
  const bool timed = ways.timed();
  const auto begin = timed ? std::chrono::steady_clock::now() : os::Time{};
  const Answer answer = asks ? assisted_.ask(request) : Answer::kNotDone;
  if (answer == Answer::kUnknown) return Outcome::failed(ETIMEDOUT);
  if (answer == Answer::kFault) return Outcome::failed(EFAULT);
  const bool done = answer == Answer::kDone;
  const Outcome outcome = done ? Outcome::done() : direct_.carry_out(request);
  if (asks && !done) {
    ways.second_failed();
  } else if (timed) {
    ways.took(std::chrono::steady_clock::now() - begin);
  }
  return outcome;
}

Outcome OneSided::access(const link::AccessRequest& request) {
  if (const int error = unusable()) return Outcome::failed(error);
  const bool counts = counted(request.write ? kCountsWrites : kCountsReads) || request.has_data;
  if (counts && !ring_.room_for(1)) return Outcome::again();
  const Outcome outcome = assisted_.fits(request.remote, kAssistedBytes, counts ? 1 : 0)
                              ? by_faster_method(choice_, request)
                              : direct_.carry_out(request);
  if (counts && outcome.state == Outcome::State::kDone) {
    const auto operation = request.has_data ? link::Operation::kWriteData
                           : request.write  ? link::Operation::kWriteEvent
                                            : link::Operation::kReadEvent;
    announce(operation, request.has_data, request.data, request.length);
  }
  return outcome;
}

Outcome OneSided::atomic(const link::AtomicRequest& request) {
  if (const int error = unusable()) return Outcome::failed(error);
  if (!link::buffers_mapped(request)) return Outcome::failed(EFAULT);
  const bool fetches = request.action.fetches();
  const bool counts = counted(fetches ? kCountsReads : kCountsWrites) || request.has_data;
  if (counts && !ring_.room_for(1)) return Outcome::again();
  const Outcome outcome = assisted_.fits(request.remote, kAtomicAssistedBytes, counts ? 1 : 0)
                              ? by_faster_method(atomic_choice_, request)
                              : direct_.carry_out(request);
  if (counts && outcome.state == Outcome::State::kDone) {
    const auto event = fetches ? link::Operation::kReadEvent : link::Operation::kWriteEvent;
    const auto data =
        fetches ? link::Operation::kAtomicReadData : link::Operation::kAtomicWriteData;
    announce(request.has_data ? data : event, request.has_data, request.data, request.length);
  }
  return outcome;
}

void OneSided::announce(link::Operation operation, bool has_data, std::uint64_t data,
                        std::size_t length) {
  link::SendRequest note;
  note.operation = operation;
  note.has_data = has_data;
  note.data = data;
  note.tag = length;
  ring_.publish(note, Kind::kInline);
}

}  // namespace weft::shm
