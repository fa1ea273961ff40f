// SPDX-License-Identifier: BSD-2-Clause
// How does a test wait for events?
#pragma once

#include <chrono>
#include <cstddef>
#include <string>
#include <vector>

#include "objects.h"

namespace weft::rdmacm_conformance {

// Far more than anything takes: a test that waits as long has failed.
std::chrono::seconds patience();

// A copy of an event, which was acknowledged meanwhile.
struct Event {
  Event() = default;
  explicit Event(const rdma_cm_event& event);

  rdma_cm_event_type type = RDMA_CM_EVENT_DEVICE_REMOVAL;  // none: there was no event in time
  int status = 0;
  rdma_cm_id* id = nullptr;
  rdma_cm_id* listen_id = nullptr;
  rdma_conn_param conn{};  // of a connection; its private data are in `data`
  rdma_ud_param ud{};      // of datagrams
  std::string data;
};

// An event channel.
class Channel {
 public:
  Channel();

  rdma_event_channel* get() const { return channel_.get(); }
  int fd() const { return channel_->fd; }
  // True when an event waits now.
  bool is_readable() const { return is_readable_within(std::chrono::milliseconds(0)); }
  bool is_readable_within(std::chrono::milliseconds time) const;
  // True once no event waits: those that wait are dropped in time.
  bool becomes_quiet() const;
  // The next event, which must come in time, to be acknowledged by its owner; null if not.
  Owned<rdma_cm_event> take();
  // The same, acknowledged.
  Event next();
  // The next one is of that type, has that status, and is acknowledged.
  Event expect(rdma_cm_event_type type, int status = 0);
  // After that no call waits: EAGAIN.
  void set_nonblocking();

 private:
  Owned<rdma_event_channel> channel_;
};

}  // namespace weft::rdmacm_conformance
