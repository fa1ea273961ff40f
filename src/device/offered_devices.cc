// SPDX-License-Identifier: BSD-2-Clause
// Which devices does this host have, and what are they called?
#include "device/offered_devices.h"

namespace weft::device {
namespace {

// Whether `name` is one of the names in `list`, which commas separate.
bool is_listed(std::string_view name, std::string_view list) {
  while (true) {
    const std::size_t comma = list.find(',');
    if (list.substr(0, comma) == name) return true;
    if (comma == std::string_view::npos) return false;
    list.remove_prefix(comma + 1);
  }
}

}  // namespace

std::vector<OfferedDevice> devices_on(const std::vector<os::Interface>& interfaces,
                                      std::string_view only) {
  std::vector<OfferedDevice> devices;
  for (unsigned i = 0; i < interfaces.size(); ++i) {
    if (!only.empty() && !is_listed(interfaces[i].name, only)) continue;
    devices.push_back({"weft" + std::to_string(i), i, interfaces[i]});
  }
  return devices;
}

Result<std::vector<OfferedDevice>> offered_devices(std::string_view only) {
  const auto interfaces = os::usable_interfaces();
  if (!interfaces) return interfaces.error();
  return devices_on(interfaces.value(), only);
}

}  // namespace weft::device
