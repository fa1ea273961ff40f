// SPDX-License-Identifier: BSD-2-Clause
// Which port does a connected endpoint share with others?
#pragma once

#include <memory>
#include <mutex>
#include <vector>

#include "base/result.h"
#include "messaging/endpoint_setup.h"
#include "os/udp_port.h"

namespace weft::messaging {

// The shared ports of a domain. Any thread.
class SharedPorts {
 public:
  // Endpoints of one port.
  static constexpr long kMostEndpoints = 254;

  // The port for an endpoint of that setup, which holds it from then on: one that there is, or a
  // new one at `port`. Null when the endpoint needs a port of its own, without receives that others
  // could share. Errors: those of SharedPort::open().
  Result<std::shared_ptr<SharedPort>> port_for(const EndpointSetup& setup, const os::UdpPort& port);

 private:
  std::mutex mutex_;
  std::vector<std::weak_ptr<SharedPort>> ports_;
};

}  // namespace weft::messaging
