// SPDX-License-Identifier: BSD-2-Clause
// Which devices are ids bound to? (rdma_get_devices(3), rdma_bind_addr(3))
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "abi.h"
#include "base/result.h"
#include "os/origin.h"
#include "os/socket_address.h"

namespace weft::rdmacm {

// The GID that stands for an address.
ibv_gid gid_of(const os::SocketAddress& address);
// The address (port 0) that a GID of RoCE v2 stands for.
os::SocketAddress address_of(const ibv_gid& gid);

// An open device. It lives as long as the process.
struct CmDevice {
  ibv_device* device = nullptr;
  ibv_context* context = nullptr;
  ibv_pd* pd = nullptr;                  // of all ids; null until it is needed
  ibv_xrcd* xrcd = nullptr;              // likewise
  std::uint8_t initiator_depth = 0;      // the largest of a connection
  std::uint8_t responder_resources = 0;  // likewise
};

// An address of this host, as a device knows it.
struct LocalGid {
  CmDevice* device = nullptr;
  ibv_gid gid{};
  std::uint8_t index = 0;
  ibv_mtu mtu = IBV_MTU_1024;  // of the port
  ibv_pd* pd = nullptr;        // the default one of the device
};
inline constexpr std::uint8_t kPort = 1;

// All devices of this process, opened by the first call that needs them. Any thread.
class DeviceTable {
 public:
  // The one of this process; a forked child has one of its own.
  static DeviceTable& instance();

  // Those that there are now, in the order of ibv_get_device_list(3). Errors: ENODEV without any;
  // those of ibv_get_device_list(3) and ibv_open_device(3).
  Result<std::vector<CmDevice*>> list();
  // The device with that address, whose port does not matter. An address of the loopback network
  // that no device has belongs to the first device, as with Linux. Errors: ENODEV for an address of
  // this host without a device, EADDRNOTAVAIL for any other, those of list() and ibv_alloc_pd(3).
  Result<LocalGid> find(const os::SocketAddress& address);
  // The first GID of the first device. Errors: those of list() and ibv_alloc_pd(3).
  Result<LocalGid> first();
  // The default XRC domain. Errors: those of ibv_open_xrcd(3).
  Result<ibv_xrcd*> xrcd_of(CmDevice& device);
  // Closes the devices that are not in use, as the process exits.
  void close();

 private:
  Result<std::vector<CmDevice*>> refresh();
  static Result<LocalGid> with_domain(LocalGid found);
  bool find_known(const os::SocketAddress& address, LocalGid& found);
  bool open_again(const std::vector<CmDevice*>& listed, const ibv_gid& gid, LocalGid& found);

  std::mutex mutex_;
  std::vector<std::unique_ptr<CmDevice>> devices_;
  os::Origin origin_;
};

// The GID of the peer at `address` for the end of a connection with that GID: a peer in the
// loopback network is reached by the own GID where that is of another network, else by the one
// that an id is bound to at that address. Without the lock of the space.
ibv_gid gid_of_peer(const ibv_gid& own, const os::SocketAddress& address);
bool is_loopback(const os::SocketAddress& address);
// The usual address of the loopback network in that family.
os::SocketAddress loopback_address(int family, std::uint16_t port);

}  // namespace weft::rdmacm
