// SPDX-License-Identifier: BSD-2-Clause
// Which devices are ids bound to?
#include "device_table.h"

#include <fcntl.h>

#include <algorithm>
#include <cstring>

#include "boundary.h"
#include "os/interfaces.h"
#include "process_mutex.h"

namespace weft::rdmacm {
namespace {

constexpr std::uint8_t kPrefixOfIpv4[12] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xFF, 0xFF};

std::uint8_t in_a_byte(int value) {
  return static_cast<std::uint8_t>(std::clamp(value, 0, int{RDMA_MAX_INIT_DEPTH}));
}

Result<std::unique_ptr<CmDevice>> open(ibv_device* device) {
  auto opened = std::make_unique<CmDevice>();
  opened->device = device;
  opened->context = ibv_open_device(device);
  if (opened->context == nullptr) return error_of_errno("ibv_open_device");
  ibv_device_attr attributes{};
  const Status known =
      status_of(ibv_query_device(opened->context, &attributes), "ibv_query_device");
  if (!known) return known.error();
  opened->initiator_depth = in_a_byte(attributes.max_qp_init_rd_atom);
  opened->responder_resources = in_a_byte(attributes.max_qp_rd_atom);
  return opened;
}

// Nothing where the device has no such GID.
bool find_gid(CmDevice& device, const ibv_gid& wanted, LocalGid& found) {
  ibv_port_attr port{};
  if (ibv_query_port(device.context, kPort, &port) != 0) return false;
  for (int i = 0; i < port.gid_tbl_len; ++i) {
    ibv_gid gid{};
    if (ibv_query_gid(device.context, kPort, i, &gid) != 0) continue;
    if (std::memcmp(&gid, &wanted, sizeof gid) != 0) continue;
    found = {&device, gid, static_cast<std::uint8_t>(i), port.active_mtu, nullptr};
    return true;
  }
  return false;
}

}  // namespace

ibv_gid gid_of(const os::SocketAddress& address) {
  ibv_gid gid{};
  const std::span<const std::byte> host = address.host_bytes();
  if (address.family() == AF_INET) std::memcpy(gid.raw, kPrefixOfIpv4, sizeof kPrefixOfIpv4);
  std::memcpy(gid.raw + sizeof gid - host.size(), host.data(), host.size());
  return gid;
}

os::SocketAddress address_of(const ibv_gid& gid) {
  if (std::memcmp(gid.raw, kPrefixOfIpv4, sizeof kPrefixOfIpv4) == 0) {
    return os::SocketAddress::of_host(AF_INET, gid.raw + sizeof kPrefixOfIpv4, 0);
  }
  return os::SocketAddress::of_host(AF_INET6, gid.raw, 0);
}

bool is_loopback(const os::SocketAddress& address) {
  const std::span<const std::byte> host = address.host_bytes();
  if (address.family() == AF_INET) return host[0] == std::byte{127};
  return address.family() == AF_INET6 &&
         std::memcmp(host.data(), &in6addr_loopback, sizeof in6addr_loopback) == 0;
}

os::SocketAddress loopback_address(int family, std::uint16_t port) {
  return family == AF_INET ? os::SocketAddress::of_host(AF_INET, "\x7F\0\0\1", port)
                           : os::SocketAddress::of_host(AF_INET6, &in6addr_loopback, port);
}

ibv_gid gid_of_peer(const ibv_gid& own, const os::SocketAddress& address) {
  if (!is_loopback(address)) return gid_of(address);
  if (!is_loopback(address_of(own))) return own;
  const auto local = DeviceTable::instance().find(address);  // as the peer finds its own
  return local ? local.value().gid : gid_of(address);
}

DeviceTable& DeviceTable::instance() {
  static DeviceTable* table = nullptr;
  const std::lock_guard guard(process_mutex());
  if (table == nullptr || table->origin_.inherited()) table = new DeviceTable;
  return *table;
}

Result<std::vector<CmDevice*>> DeviceTable::list() {
  const std::lock_guard guard(mutex_);
  return refresh();
}

Result<std::vector<CmDevice*>> DeviceTable::refresh() {
  int count = 0;
  const std::unique_ptr<ibv_device*, decltype(&ibv_free_device_list)> listed(
      ibv_get_device_list(&count), &ibv_free_device_list);
  if (listed == nullptr) return error_of_errno("ibv_get_device_list");
  std::vector<CmDevice*> devices;
  for (int i = 0; i < count; ++i) {
    const auto known = std::find_if(devices_.rbegin(), devices_.rend(), [&](const auto& each) {
      return each->device == listed.get()[i];
    });
    if (known != devices_.rend()) {
      devices.push_back(known->get());
      continue;
    }
    auto opened = open(listed.get()[i]);
    if (!opened) return opened.error();
    devices.push_back(devices_.emplace_back(std::move(opened).value()).get());
  }
  if (devices.empty()) return Error{ENODEV, "this host has no device"};
  return devices;
}

// Those that were opened last first: they have the addresses of today.
bool DeviceTable::find_known(const os::SocketAddress& address, LocalGid& found) {
  const auto has = [&](const ibv_gid& gid) {
    return std::any_of(devices_.rbegin(), devices_.rend(),
                       [&](const auto& each) { return find_gid(*each, gid, found); });
  };
  if (has(gid_of(address))) return true;
  if (!is_loopback(address) || devices_.empty()) return false;
  if (has(gid_of(loopback_address(address.family(), 0)))) return true;
  CmDevice& first = *devices_.front();
  ibv_gid gid{};
  return ibv_query_gid(first.context, kPort, 0, &gid) == 0 && find_gid(first, gid, found);
}

// An open device has the addresses that its interface had then.
bool DeviceTable::open_again(const std::vector<CmDevice*>& listed, const ibv_gid& gid,
                             LocalGid& found) {
  for (const CmDevice* const each : listed) {
    auto opened = open(each->device);
    if (!opened) continue;
    if (!find_gid(*opened.value(), gid, found)) {
      ibv_close_device(opened.value()->context);
      continue;
    }
    devices_.push_back(std::move(opened).value());
    return true;
  }
  return false;
}

Result<LocalGid> DeviceTable::with_domain(LocalGid found) {
  CmDevice& device = *found.device;
  if (device.pd == nullptr) device.pd = ibv_alloc_pd(device.context);
  if (device.pd == nullptr) return error_of_errno("ibv_alloc_pd");
  found.pd = device.pd;
  return found;
}

Result<LocalGid> DeviceTable::first() {
  const std::lock_guard guard(mutex_);
  const auto devices = refresh();
  if (!devices) return devices.error();
  CmDevice& device = *devices.value().front();
  LocalGid found;
  ibv_gid gid{};
  if (ibv_query_gid(device.context, kPort, 0, &gid) != 0 || !find_gid(device, gid, found)) {
    return Error{ENODEV, "a device without a GID"};
  }
  return with_domain(found);
}

Result<LocalGid> DeviceTable::find(const os::SocketAddress& address) {
  const std::lock_guard guard(mutex_);
  LocalGid found;
  bool is_found = find_known(address, found);
  if (!is_found) {
    const auto devices = refresh();
    if (!devices) return devices.error();
    const bool is_local = os::is_local_address(address.get());
    is_found = find_known(address, found) ||
               (is_local && open_again(devices.value(), gid_of(address), found));
    if (!is_found && is_local) return Error{ENODEV, address.host() + " belongs to no device"};
  }
  if (!is_found) return Error{EADDRNOTAVAIL, address.host() + " is no address of this host"};
  return with_domain(found);
}

Result<ibv_xrcd*> DeviceTable::xrcd_of(CmDevice& device) {
  const std::lock_guard guard(mutex_);
  if (device.xrcd == nullptr) {
    ibv_xrcd_init_attr attributes{};
    attributes.comp_mask = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS;
    attributes.fd = -1;
    attributes.oflags = O_CREAT;
    device.xrcd = ibv_open_xrcd(device.context, &attributes);
  }
  if (device.xrcd == nullptr) return error_of_errno("ibv_open_xrcd");
  return device.xrcd;
}

// A signal handler that exits may have interrupted a thread that holds the lock.
void DeviceTable::close() {
  const std::unique_lock guard(mutex_, std::try_to_lock);
  if (!guard.owns_lock() || origin_.inherited()) return;
  for (const auto& each : devices_) {
    if (each->xrcd != nullptr && ibv_close_xrcd(each->xrcd) == 0) each->xrcd = nullptr;
    if (each->pd != nullptr && ibv_dealloc_pd(each->pd) == 0) each->pd = nullptr;
    if (each->pd == nullptr && each->xrcd == nullptr) ibv_close_device(each->context);
  }
}

}  // namespace weft::rdmacm
