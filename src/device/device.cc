// SPDX-License-Identifier: BSD-2-Clause
// What do all front ends of one process share?
#include "device/device.h"

#include "base/warning.h"
#include "os/at_fork.h"
#include "os/fd.h"
#include "os/process_memory.h"
#include "os/user_memory.h"
#include "relay_engine.h"

namespace weft::device {
namespace {

// The one device of this process.
struct CurrentDevice {
  std::mutex mutex;
  std::weak_ptr<Device> device;
  pid_t process = 0;
};

// Outlives every static destructor.
CurrentDevice& current = *new CurrentDevice;

os::AtFork at_fork(5, current.mutex);

}  // namespace

Device::Device(os::RuntimeDirectory directory, std::unique_ptr<memory::RegionTable> regions)
    : directory_(std::move(directory)),
      stats_(StatsFile::open(directory_.path())),
      regions_(std::move(regions)),
      regions_of_users_(regions_->for_owner()) {}

Device::~Device() {
  if (capture_ != nullptr) capture_->flush();
}

void Device::sweep_up() const { os::sweep(directory()); }

Result<std::shared_ptr<RelayEngine>> Device::relay_engine() {
  const std::lock_guard guard(relay_engine_mutex_);
  if (auto present = relay_engine_.lock()) return present;
  auto opened = RelayEngine::open(stats_->of_process());
  if (opened) relay_engine_ = opened.value();
  return opened;
}

// Without a file of its table the process is reached over the network only; a shortage of
// descriptors or memory would keep it from the network, too.
Result<std::shared_ptr<Device>> Device::open(const std::string& base_directory) {
  constexpr int kTries = 100;
  os::handle_user_faults();
  for (int i = 0;; ++i) {
    auto directory = os::RuntimeDirectory::open(base_directory);
    if (!directory) return directory.error();
    auto regions = memory::RegionTable::create(directory.value().path());
    if (regions) {
      return std::shared_ptr<Device>(
          new Device(std::move(directory).value(), std::move(regions).value()));
    }
    const Error& reason = regions.error();
    // The last process that leaves a directory removes it: perhaps just before the table is in it.
    if (reason.code == ENOENT && i < kTries) continue;
    if (os::is_shortage(reason.code)) return reason;
    auto nameless = memory::RegionTable::create({});
    if (!nameless) return nameless.error();
    return std::shared_ptr<Device>(
        new Device(os::RuntimeDirectory::none(reason), std::move(nameless).value()));
  }
}

void Device::warn_of_network(const Error& reason) {
  if (warned_.test_and_set()) return;
  warn("no shared memory, peers are reached over the network only: " + reason.message);
}

Result<std::shared_ptr<Device>> Device::get(const std::string& base_directory) {
  const std::lock_guard guard(current.mutex);
  // A forked child needs a device of its own: the inherited one shows the parent's memory.
  const auto device = current.device.lock();
  if (device != nullptr && current.process == os::process_id()) return device;
  os::allow_memory_access_by_peers();
  auto opened = open(base_directory);
  if (opened) current.device = opened.value();
  current.process = os::process_id();
  return opened;
}

}  // namespace weft::device
