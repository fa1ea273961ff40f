// SPDX-License-Identifier: BSD-2-Clause
// What do all ids of a process share?
#include "cm_space.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <mutex>
#include <string_view>

#include "cm_id.h"
#include "device/device.h"
#include "device_table.h"
#include "process_mutex.h"

namespace weft::rdmacm {
namespace {

constexpr std::array<std::string_view, 2> kPrefixes = {"FI_WEFT_", "WEFT_"};

std::shared_ptr<CmSpace>& current() {
  static auto& space = *new std::shared_ptr<CmSpace>;
  return space;
}

// rdma-core closes its devices then, too.
[[gnu::destructor]] void leave() {
  CmSpace::release();
  DeviceTable::instance().close();
}

}  // namespace

Result<std::shared_ptr<CmSpace>> CmSpace::instance() {
  const std::lock_guard guard(process_mutex());
  std::shared_ptr<CmSpace>& space = current();
  if (space != nullptr && !space->origin_.inherited()) return space;
  const Options options = Options::from_environment(
      kPrefixes, [](const std::string& line) { std::fprintf(stderr, "weft: %s\n", line.c_str()); });
  auto device = device::Device::get(options.runtime_dir);
  if (!device) return device.error();
  auto port = queue::QpPort::open_for_managers(std::move(device).value());
  if (!port) return port.error();
  // A parent's is left alone: its threads are not here.
  if (space != nullptr) new std::shared_ptr<CmSpace>(space);
  space.reset(new CmSpace(std::move(port).value(), options));
  return space;
}

// A signal handler that exits may have interrupted a thread that holds the lock.
void CmSpace::release() {
  const std::unique_lock guard(process_mutex(), std::try_to_lock);
  if (!guard.owns_lock()) return;
  if (current() != nullptr && current()->origin_.inherited()) return;
  current().reset();
}

CmSpace::~CmSpace() {
  const MutexLock guard(lock());
  for (const auto& each : managers_) each->close();
}

Result<std::shared_ptr<PortManager>> CmSpace::open(const os::SocketAddress& address,
                                                   bool both_families) {
  auto manager = PortManager::open(*this, address, both_families);
  if (manager) managers_.push_back(manager.value());
  return manager;
}

Result<std::shared_ptr<PortManager>> CmSpace::bind(CmId& id, const os::SocketAddress& address) {
  const bool both_families =
      address.family() == AF_INET6 && address.is_any() && !id.options.is_ipv6_only;
  std::shared_ptr<PortManager> manager;
  for (const auto& each : managers_) {
    if (each->address() != address || each->has_both_families() != both_families) continue;
    const bool is_free = std::ranges::all_of(each->bound, [&](const CmId* other) {
      return other->ps != id.ps || (other->options.reuses_address && id.options.reuses_address);
    });
    if (!is_free) return Error{EADDRINUSE, address.text() + " is in use"};
    manager = each;
  }
  if (manager == nullptr) {
    close_left(address.port());
    auto opened = open(address, both_families);
    if (!opened) return opened.error();
    manager = std::move(opened).value();
  }
  manager->bound.push_back(&id);
  ++manager->users;
  return manager;
}

Result<std::shared_ptr<PortManager>> CmSpace::for_requests() {
  if (for_requests_ == nullptr) {
    auto opened = open(os::SocketAddress::of_host(AF_INET6, &in6addr_any, 0), true);
    if (!opened) return opened.error();
    for_requests_ = std::move(opened).value();
  }
  ++for_requests_->users;
  return for_requests_;
}

void CmSpace::let_go(CmId& id) {
  if (id.manager == nullptr) return;
  const std::shared_ptr<PortManager> manager = std::move(id.manager);
  std::erase(manager->bound, &id);
  --manager->users;
  if (manager->is_idle()) close(*manager);
}

// Those that no id uses only repeat the ends of their last connections.
void CmSpace::close_left(std::uint16_t port) {
  std::erase_if(managers_, [&](const auto& each) {
    const bool is_left =
        each->users == 0 && each->address().port() == port && each != for_requests_;
    if (is_left) each->close();
    return is_left;
  });
}

void CmSpace::close(PortManager& manager) {
  if (&manager == for_requests_.get()) return;
  manager.close();
  std::erase_if(managers_, [&](const auto& each) { return each.get() == &manager; });
}

}  // namespace weft::rdmacm
