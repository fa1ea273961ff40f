// SPDX-License-Identifier: BSD-2-Clause
// Which devices does ibv_get_device_list(3) list, and what is known of each?
#include "verbs_device.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include "base/path_mtu.h"
#include "boundary.h"
#include "settings.h"

namespace weft::verbs {
namespace {

constexpr char kOperations = 0;  // its address is that of no driver

template <std::size_t size>
void write_text(char (&to)[size], const std::string& text) {
  std::snprintf(to, size, "%s", text.c_str());
}

std::string name_of(const device::OfferedDevice& offered) {
  const std::string& pattern = settings().device_names;
  return pattern.empty() ? offered.name : device_name(pattern, offered.number);
}

}  // namespace

DeviceState::DeviceState(device::OfferedDevice from)
    : offered(std::move(from)),
      gids(offered.interface),
      guid(os::interface_identity(offered.interface.name)),
      hardware_address(os::hardware_address(offered.interface.name)) {}

std::size_t most_path_mtu(const DeviceState& device) {
  return std::max(path_mtu(device.offered.interface.mtu), kLeastPathMtu);
}

ibv_mtu mtu_of(std::size_t bytes) {
  unsigned code = 0;
  while (code < IBV_MTU_4096 && (std::size_t{128} << code) < bytes) ++code;
  return static_cast<ibv_mtu>(code);
}

VerbsDevice::VerbsDevice(std::shared_ptr<const DeviceState> state, const std::string& name)
    : interface_(state->offered.interface.name),
      interface_index_(state->offered.interface.index),
      number_(state->offered.number),
      guid_(state->guid),
      state_(std::move(state)) {
  ibv_device& device = memory_.device;
  device.node_type = IBV_NODE_CA;
  device.transport_type = IBV_TRANSPORT_IB;
  write_text(device.name, name);
  write_text(device.dev_name, name);
  write_text(device.dev_path, "/sys/class/infiniband_verbs/" + name);
  write_text(device.ibdev_path, "/sys/class/infiniband/" + name);
  memory_.operations = &kOperations;
}

// Outlives every static destructor.
DeviceRegistry& DeviceRegistry::instance = *new DeviceRegistry;

VerbsDevice& DeviceRegistry::entry_for(std::shared_ptr<const DeviceState> state) {
  const auto found = std::ranges::find_if(devices_, [&](const auto& each) {
    return each->number_ == state->offered.number && each->guid_ == state->guid &&
           each->interface_ == state->offered.interface.name &&
           each->interface_index_ == state->offered.interface.index;
  });
  if (found != devices_.end()) {
    (*found)->state_ = std::move(state);
    return **found;
  }
  const std::string name = name_of(state->offered);
  return *devices_.emplace_back(std::make_unique<VerbsDevice>(std::move(state), name));
}

Result<std::vector<VerbsDevice*>> DeviceRegistry::list() {
  auto offered = device::offered_devices(settings().options.interface);
  if (!offered) return offered.error();
  std::vector<VerbsDevice*> devices;
  const std::lock_guard lock(mutex_);
  for (device::OfferedDevice& each : offered.value()) {
    devices.push_back(&entry_for(std::make_shared<const DeviceState>(std::move(each))));
  }
  return devices;
}

std::shared_ptr<const DeviceState> DeviceRegistry::state_of(const VerbsDevice& device) {
  const std::lock_guard lock(mutex_);
  return device.state_;
}

}  // namespace weft::verbs

namespace {

using weft::Error;
using weft::Result;
using weft::verbs::DeviceRegistry;
using weft::verbs::VerbsDevice;

// An array that ibv_free_device_list() gives back with free(3).
Result<ibv_device**> make_list(int* count) {
  if (count != nullptr) *count = 0;
  const auto devices = DeviceRegistry::instance.list();
  if (!devices) return devices.error();
  const std::size_t length = devices.value().size();
  auto** list = static_cast<ibv_device**>(std::calloc(length + 1, sizeof(void*)));
  if (list == nullptr) return Error{ENOMEM, "no memory for a list of devices"};
  std::ranges::transform(devices.value(), list, &VerbsDevice::handle);
  if (count != nullptr) *count = static_cast<int>(length);
  errno = 0;  // programs tell an empty list from an error by it
  return list;
}

}  // namespace

ibv_device** ibv_get_device_list(int* num_devices) {
  return weft::verbs::pointer_at_border([&] { return make_list(num_devices); });
}

void ibv_free_device_list(ibv_device** list) { std::free(list); }

const char* ibv_get_device_name(ibv_device* device) { return device->name; }

int ibv_get_device_index(ibv_device* device) {
  return static_cast<int>(VerbsDevice::of(device).number());
}

__be64 ibv_get_device_guid(ibv_device* device) {
  return __builtin_bswap64(VerbsDevice::of(device).guid());
}
