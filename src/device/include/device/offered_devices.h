// SPDX-License-Identifier: BSD-2-Clause
// Which devices does this host have, and what are they called?
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "os/interfaces.h"

namespace weft::device {

// One of Weft's devices: a network interface with the name that every front end gives it, of a
// libfabric domain and of a verbs device.
struct OfferedDevice {
  std::string name;  // "weft0", "weft1", ... in the order of os::usable_interfaces()
  unsigned number = 0;
  os::Interface interface;
};

// The devices over `interfaces`; with names in `only`, separated by commas, those on these
// interfaces, which keep their numbers.
std::vector<OfferedDevice> devices_on(const std::vector<os::Interface>& interfaces,
                                      std::string_view only);

// The same for the interfaces that this host has now. Errors: those of os::usable_interfaces().
Result<std::vector<OfferedDevice>> offered_devices(std::string_view only);

}  // namespace weft::device
