// SPDX-License-Identifier: BSD-2-Clause
// What does the handle in an info stand for? fi_endpoint(3), fi_eq(3)
#pragma once

#include <rdma/fabric.h>

#include <mutex>
#include <optional>
#include <vector>

#include "connect/listener.h"
#include "os/udp_port.h"

namespace weft::fabric {

class PassiveEndpoint;

// What an active endpoint begins with that was opened by an info with a handle: a request that it
// may accept, or the address of a passive endpoint.
struct Beginning {
  std::optional<connect::Request> request;
  os::SocketAddress listener;  // with a request: the address that it was sent to
  std::optional<os::UdpPort> port;
  bool chosen = false;  // the program has chosen that port
};

// The open passive endpoints of one fabric. Any thread.
class PassiveEndpoints {
 public:
  void add(PassiveEndpoint& endpoint);
  // When this returns no thread uses the endpoint any more.
  void remove(PassiveEndpoint& endpoint);
  // Takes what `handle` stands for: an address for good, a request until it is decided or given
  // back. Errors: -FI_EINVAL when it is no handle (any more) or is taken, -FI_EBUSY for a passive
  // endpoint that listens.
  int take(const fid* handle, Beginning& beginning);

 private:
  std::mutex mutex_;
  std::vector<PassiveEndpoint*> endpoints_;
};

}  // namespace weft::fabric
