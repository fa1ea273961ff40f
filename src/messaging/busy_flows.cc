// SPDX-License-Identifier: BSD-2-Clause
// Which flows of a port's endpoints have requests pending?
#include "messaging/busy_flows.h"

#include <algorithm>

namespace weft::messaging {

void BusyFlows::add(link::Flow& flow, link::FlowSink& sink) {
  const bool known = std::any_of(flows_.begin(), flows_.end(),
                                 [&](const BusyFlow& busy) { return busy.flow == &flow; });
  if (!known) flows_.push_back({&flow, &sink});
}

void BusyFlows::remove(const link::Flow& flow) {
  std::erase_if(flows_, [&](const BusyFlow& busy) { return busy.flow == &flow; });
}

void BusyFlows::remove_all(const link::FlowSink& sink) {
  std::erase_if(flows_, [&](const BusyFlow& busy) { return busy.sink == &sink; });
}

void BusyFlows::progress_all() {
  for (std::size_t i = 0; i < flows_.size();) {
    link::Flow* const flow = flows_[i].flow;
    flow->progress(*flows_[i].sink);
    if (flow->busy()) {
      ++i;
    } else {
      flow->set_asleep(false);
      remove(*flow);
    }
  }
}

bool BusyFlows::cancel(void* cookie, link::FlowSink& sink) {
  return std::any_of(flows_.begin(), flows_.end(), [&](const BusyFlow& busy) {
    return busy.sink == &sink && busy.flow->cancel(cookie, sink);
  });
}

void BusyFlows::set_asleep(bool asleep) {
  for (const BusyFlow& busy : flows_) busy.flow->set_asleep(asleep);
}

bool BusyFlows::ready() const {
  return std::any_of(flows_.begin(), flows_.end(),
                     [](const BusyFlow& busy) { return busy.flow->ready(); });
}

}  // namespace weft::messaging
