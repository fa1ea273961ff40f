// SPDX-License-Identifier: BSD-2-Clause
// Which port does a connected endpoint share with others?
#include "messaging/shared_ports.h"

#include "messaging/shared_port.h"

namespace weft::messaging {

Result<std::shared_ptr<SharedPort>> SharedPorts::port_for(const EndpointSetup& setup,
                                                          const os::UdpPort& port) {
  const bool receives = setup.bindings.rx != nullptr || setup.receives != nullptr;
  if (setup.connection == nullptr || !receives) return std::shared_ptr<SharedPort>();
  const std::lock_guard guard(mutex_);
  std::erase_if(ports_, [](const auto& known) { return known.expired(); });
  for (const auto& known : ports_) {
    // Each endpoint holds it once, and this the last time.
    auto shared = known.lock();
    if (shared == nullptr || !shared->serves(setup)) continue;
    if (shared.use_count() <= kMostEndpoints) return shared;
  }
  auto opened = SharedPort::open(setup, port);
  if (opened) ports_.push_back(opened.value());
  return opened;
}

}  // namespace weft::messaging
