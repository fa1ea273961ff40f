// SPDX-License-Identifier: BSD-2-Clause
// Which devices does ibv_get_device_list(3) list, and what is known of each?
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "abi.h"
#include "base/result.h"
#include "device/offered_devices.h"
#include "os/at_fork.h"
#include "os/interface_identity.h"
#include "verbs/gid_table.h"

namespace weft::verbs {

// A device as it was when it was last listed. Never changes: a context keeps the one that it was
// opened with.
struct DeviceState {
  explicit DeviceState(device::OfferedDevice from);

  device::OfferedDevice offered;
  GidTable gids;
  std::uint64_t guid = 0;  // in host order; not 0
  os::HardwareAddress hardware_address{};
};

// The largest path MTU whose packets its interface carries: 256, 512, 1024, 2048 or 4096.
std::size_t most_path_mtu(const DeviceState& device);
// The code of a path MTU; 0 for none.
ibv_mtu mtu_of(std::size_t bytes);

// The object behind an ibv_device. libmlx5 and libefa read a pointer to the operations of the
// driver behind the structure (verbs_device::ops, rdma-core) and compare it with their own.
class VerbsDevice {
 public:
  VerbsDevice(std::shared_ptr<const DeviceState> state, const std::string& name);

  static VerbsDevice& of(ibv_device* handle) { return *reinterpret_cast<VerbsDevice*>(handle); }
  ibv_device* handle() { return &memory_.device; }

  const std::string& interface() const { return interface_; }
  unsigned number() const { return number_; }
  std::uint64_t guid() const { return guid_; }

 private:
  friend class DeviceRegistry;
  struct Memory {
    ibv_device device;
    const void* operations;
  };
  static_assert(offsetof(Memory, operations) == 664);

  Memory memory_{};
  const std::string interface_;
  const unsigned interface_index_;
  const unsigned number_;
  const std::uint64_t guid_;
  std::shared_ptr<const DeviceState> state_;  // guarded by the registry
};

// All devices that were ever listed by this process. They live as long as it, so that programs may
// compare pointers and open a device after they gave the list back. Any thread, and after fork(2).
class DeviceRegistry {
 public:
  static DeviceRegistry& instance;

  // Those that there are now, in the order of their numbers. Errors: os::usable_interfaces().
  Result<std::vector<VerbsDevice*>> list();
  // The device as it was when it was last listed.
  std::shared_ptr<const DeviceState> state_of(const VerbsDevice& device);

 private:
  DeviceRegistry() = default;
  VerbsDevice& entry_for(std::shared_ptr<const DeviceState> state);

  std::mutex mutex_;
  os::AtFork at_fork_{8, mutex_};
  std::vector<std::unique_ptr<VerbsDevice>> devices_;
};

}  // namespace weft::verbs
