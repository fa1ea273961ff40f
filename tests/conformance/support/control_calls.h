// SPDX-License-Identifier: BSD-2-Clause
// What does a thread do that makes control calls while others move data? (fi_domain(3): "Control
// interfaces are always considered thread safe")
#pragma once

#include "place.h"

namespace weft::conformance {

// Control calls with the objects that other threads use at the same time, and with objects of its
// own. One thread; others have numbers of their own. It moves no data, reads no completion queue
// and no counter: that would be subject to the threading model.
class ControlCalls {
 public:
  // `ep` may be null.
  struct Used {
    const Domain* domain;
    fid_cq* queue;
    fid_av* addresses;
    fid_ep* ep;
  };
  ControlCalls(const Used& used, int thread);

  // Inserts so many addresses, looks each of them up and removes all.
  void exchange_addresses(int count);
  // Opens an endpoint, binds it to what others use, enables and closes it.
  void open_endpoint();
  // The same, with a transmit and a receive context that endpoints share.
  void open_shared_contexts();
  // Registers a region, opens a completion queue, a counter and sets of them, and closes all.
  void open_objects();
  // Opens and closes a fabric and a domain.
  void open_domain();
  // Makes a connection (FI_EP_MSG) and ends it. Its endpoints report to the queue that others read.
  void connect();
  // Joins a multicast group of IPv4 and leaves it.
  void join_group();
  // Asks what exists, what is possible, and what the endpoint is like; opens an alias of it.
  void ask();
  // One of each kind, groups only where the endpoint can join them.
  void make_each();

 private:
  void bind_and_enable(fid_ep* ep, const fi_info& info, fid_eq* events);
  Fid<fid_ep> open_connectable(fi_info* info, fid_eq* events);
  Info next_event(fid_eq* events, std::uint32_t expected);

  const Used used_;
  const int thread_;
  const fi_threading threading_;
  Info connected_;  // what connections are opened with
};

}  // namespace weft::conformance
