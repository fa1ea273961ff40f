// SPDX-License-Identifier: BSD-2-Clause
// What do all front ends of one process share?
#include "device/device.h"

#include "doors.h"
#include "os/process_memory.h"
#include "os/runtime_dir.h"

namespace weft::device {

Device::Device(std::string directory, std::unique_ptr<memory::RegionTable> regions,
               std::shared_ptr<memory::ForeignTable> regions_of_users)
    : directory_(std::move(directory)),
      regions_(std::move(regions)),
      regions_of_users_(std::move(regions_of_users)) {}

Device::~Device() {
  if (capture_ != nullptr) capture_->flush();
  sweep_up();
}

void Device::sweep_up() const { os::sweep(directory_); }

Result<std::shared_ptr<Doors>> Device::doors() {
  const std::lock_guard guard(doors_mutex_);
  if (auto present = doors_.lock()) return present;
  auto opened = Doors::open();
  if (opened) doors_ = opened.value();
  return opened;
}

Result<std::shared_ptr<Device>> Device::open(const std::string& base_directory) {
  auto directory = os::runtime_directory(base_directory);
  if (!directory) return directory.error();
  os::sweep(directory.value());
  os::allow_memory_access_by_peers();
  auto regions = memory::RegionTable::create(directory.value());
  if (!regions) return regions.error();
  auto of_users = memory::ForeignTable::open(directory.value(), regions.value()->name());
  if (!of_users) return of_users.error();
  return std::shared_ptr<Device>(new Device(
      std::move(directory).value(), std::move(regions).value(), std::move(of_users).value()));
}

Result<std::shared_ptr<Device>> Device::get(const std::string& base_directory) {
  static std::mutex mutex;
  static std::weak_ptr<Device> current;
  static pid_t process = 0;
  const std::lock_guard guard(mutex);
  // A forked child needs a device of its own: the inherited one shows the parent's memory.
  const auto device = current.lock();
  if (device != nullptr && process == os::process_id()) return device;
  auto opened = open(base_directory);
  if (opened) current = opened.value();
  process = os::process_id();
  return opened;
}

}  // namespace weft::device
