// SPDX-License-Identifier: BSD-2-Clause
// What is an address vector to a libfabric program? fi_av(3)
#pragma once

#include <rdma/fi_domain.h>

#include "base/usable.h"
#include "domain.h"
#include "eq.h"
#include "fid_object.h"
#include "messaging/address_vector.h"

namespace weft::fabric {

// The object behind a fid_av. Any thread, under every threading model.
class Av : public ChildObject<Av, fid_av, Domain>, public Usable {
 public:
  Av(Domain& domain, const fi_av_attr& attributes, void* context);

  messaging::AddressVector& addresses() { return addresses_; }
  Domain& domain() const { return parent(); }

  // Reports insertions to an event queue instead of returning their number (FI_EVENT).
  bool reports_events() const { return events_; }
  // Where to: the queue that is bound, or its domain's; null if there is none.
  EventQueue* event_queue() const;
  // fi_av_bind(3). Errors: -FI_EINVAL for a second one.
  int bind(EventQueue& eq) { return eq_.bind(eq); }
  // What an insertion of `wanted` addresses returns that found a place for `inserted` of them; the
  // others have an errno in `errors`. With FI_EVENT it goes to the event queue. Each error is
  // reported there with the index of its address.
  int report(void* context, std::size_t inserted, const std::vector<int>& errors);

 private:
  const bool events_;
  BoundEventQueue eq_;
  messaging::AddressVector addresses_;
  const OpenObjects<Av>::Listing listed_;
};

}  // namespace weft::fabric
