// SPDX-License-Identifier: BSD-2-Clause
// Which operations of a flow have not ended, and which ends has its user not heard of?
#include "operations.h"

#include <algorithm>
#include <utility>

#include "shared.h"

namespace weft::rdm {

Operations::Operations(Shared& shared) : shared_(shared), messages_(shared.message_memory) {}

// The memory of the copy is used again.
RdmOperation& Operations::begin(WorkQueue& queue, void* cookie, bool reported) {
  FreeOperations& free = shared_.free_operations;
  if (free.empty()) free.emplace_back();
  live_.splice(live_.end(), free, free.begin());
  RdmOperation& operation = live_.back();
  std::vector<std::byte> copy = std::move(operation.copy);
  operation = {};
  operation.copy = std::move(copy);
  operation.queue = &queue;
  operation.self = std::prev(live_.end());
  operation.cookie = cookie;
  operation.reported = reported;
  if (reported) ++reported_;
  operation.works = 1;
  return operation;
}

void Operations::end(RdmOperation& operation) {
  if (operation.rendezvous_id != 0) shared_.named_operations.forget(operation.rendezvous_id);
  if (operation.takes)
    shared_.ended_receives.push_back({operation.cookie, operation.failure.error});
  if (operation.reads) --reading_;
  messages_.give(operation.charged);
  report_end(operation, operation.failure.error, operation.failure.detail);
  FreeOperations& free = shared_.free_operations;
  free.splice(free.begin(), live_, operation.self);
}

void Operations::report_end(RdmOperation& operation, int error, int detail) {
  if (operation.reported) {
    --reported_;
    if (held()) finished_.push_back({operation.cookie, error, detail});
  }
  operation.reported = operation.offered = operation.borrows = operation.awaits_answer = false;
}

void Operations::drop(RdmOperation& operation) {
  if (std::exchange(operation.reported, false)) --reported_;
  end(operation);
}

void Operations::mark_as_read(RdmOperation& operation) {
  operation.reads = true;
  ++reading_;
}

void Operations::charge_answer(RdmOperation& operation, std::size_t bytes) {
  messages_.charge(operation.charged = link::kAnswerCost + bytes);
}

bool Operations::may_answer() const {
  return messages_.may_take(link::kAnswerCost + kMaxAtomicBytes);
}

bool Operations::any_borrows() const {
  return std::ranges::any_of(live_, [](const RdmOperation& operation) {
    return operation.borrows && !operation.offered && !operation.takes;
  });
}

void Operations::report(link::FlowSink& sink) {
  for (const Finished& each : std::exchange(finished_, {})) {
    sink.ended(each.cookie, each.error, each.detail);
  }
}

void Operations::trim() {
  shared_.free_operations.clear();
  finished_.shrink_to_fit();
}

}  // namespace weft::rdm
