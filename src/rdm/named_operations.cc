// SPDX-License-Identifier: BSD-2-Clause
// Which operations may peers name by a number?
#include "named_operations.h"

#include <algorithm>
#include <vector>

#include "rdm/message.h"
#include "request_target.h"
#include "work_queue.h"

namespace weft::rdm {

std::uint32_t NamedOperations::name(RdmOperation& operation) {
  do {
    next_ = (next_ + 1) & kNumberBits;
  } while (next_ == 0 || operations_.contains(next_));
  operations_.emplace(next_, &operation);
  return next_;
}

RdmOperation* NamedOperations::find(std::uint32_t number, std::uint64_t flow) const {
  const auto found = operations_.find(number);
  if (found == operations_.end()) return nullptr;
  const FlowInitiator& initiator = found->second->queue->flow();
  const bool same = initiator.is_open() && initiator.identity() == flow;
  return same ? found->second : nullptr;
}

RdmOperation* NamedOperations::find_receive(std::uint32_t number, std::uint32_t source) const {
  const auto found = operations_.find(number);
  if (found == operations_.end()) return nullptr;
  RdmOperation* operation = found->second;
  return operation->takes && operation->offer.source == source ? operation : nullptr;
}

RdmOperation* NamedOperations::find_taker(const link::Offer& offer) const {
  const auto found = std::ranges::find_if(operations_, [&](const auto& each) {
    const RdmOperation& operation = *each.second;
    return operation.takes && operation.offer.source == offer.source &&
           operation.offer.rendezvous_id == offer.rendezvous_id;
  });
  return found != operations_.end() ? found->second : nullptr;
}

bool NamedOperations::waits_for(const RequestSource& source) const {
  return std::ranges::any_of(operations_, [&](const auto& each) {
    const FlowInitiator& flow = each.second->queue->flow();
    const bool same = source.pair == 0 || flow.context() == source.pair;
    return same && flow.endpoint_id() == source.endpoint_id;
  });
}

void NamedOperations::forget_buffers() {
  for (const auto& [number, operation] : operations_) {
    if (operation->takes) operation->count = 0;
  }
}

void NamedOperations::abandon_receives_from(std::uint32_t source) {
  std::vector<RdmOperation*> receives;
  for (const auto& [number, operation] : operations_) {
    if (operation->takes && operation->offer.source == source) receives.push_back(operation);
  }
  for (RdmOperation* receive : receives) receive->queue->abandon(*receive);
}

}  // namespace weft::rdm
