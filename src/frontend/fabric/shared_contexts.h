// SPDX-License-Identifier: BSD-2-Clause
// What may several endpoints of a domain share? fi_endpoint(3), "Shared contexts"
#pragma once

#include <rdma/fi_endpoint.h>

#include <atomic>

#include "base/usable.h"
#include "domain.h"
#include "fid_object.h"
#include "handle.h"
#include "messaging/receive_queue.h"

namespace weft::fabric {

// The object behind a fid_stx. Nothing scarce stands behind it: each endpoint that is bound to it
// transmits as it does without one, as many operations at a time as the size of this one says.
class SharedTransmit : public ChildObject<SharedTransmit, fid_stx, Domain>, public Usable {
 public:
  SharedTransmit(Domain& domain, const fi_tx_attr& attributes, Places::Reservation place,
                 void* context);

  Domain& domain() const { return parent(); }
  std::size_t size() const { return size_; }
  // Endpoints that are bound to it take theirs here.
  Places& places() { return places_; }

 private:
  const Places::Reservation place_;
  const std::size_t size_;
  Places places_;
};

// The object behind a fid_ep of fi_srx_context(3): receives posted here take the messages of all
// endpoints that are bound to it, and complete in the queue of the endpoint whose message it was.
class SharedReceive : public Handle, public Usable {
 public:
  SharedReceive(Domain& domain, const fi_rx_attr& attributes, Places::Reservation place,
                void* context);
  ~SharedReceive();

  // The object behind `fid`.
  static SharedReceive& from(struct fid* fid) {
    return static_cast<SharedReceive&>(Handle::from(fid));
  }
  messaging::ReceiveQueue& queue() { return queue_; }
  // Endpoints that are bound to it take theirs here.
  Places& places() { return places_; }

 private:
  const Use use_;
  const Places::Reservation place_;
  Places places_;
  std::atomic<std::size_t> min_multi_receive_here_{kMinMultiReceive};
  messaging::ReceiveQueue queue_;
};

}  // namespace weft::fabric
