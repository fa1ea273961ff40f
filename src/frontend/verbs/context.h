// SPDX-License-Identifier: BSD-2-Clause
// What is an open device? (ibv_open_device(3))
#pragma once

#include <infiniband/verbs.h>

#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "base/result.h"
#include "device/device.h"
#include "device/event_channel.h"
#include "gid.h"
#include "queue/port.h"

namespace weft::verbs {

// A device as programs see it: a network interface.
struct VerbsDevice {
  ibv_device shown{};
  const void* ops = nullptr;  // where libmlx5 and libefa look for their own table: never theirs
  std::vector<os::SocketAddress> addresses;  // of the GIDs, in the order of their indexes
  std::size_t mtu = 0;                       // bytes of a packet
  std::uint64_t guid = 0;
  int index = 0;
};

// The structure with the extended operations, of which the context is the last member.
verbs_context& extended(ibv_context* context);

class VerbsContext {
 public:
  static VerbsContext& of(ibv_context* context);
  static ibv_context* open(VerbsDevice& device);
  static int close(ibv_context* context);

  device::Device& device() { return *device_; }
  const std::shared_ptr<device::Device>& shared_device() const { return device_; }
  const VerbsDevice& shown_device() const { return shown_; }
  device::EventChannel& async_events() { return *events_; }
  // The ports of queue pairs: each completion queue is assigned to one, in turn.
  Result<std::shared_ptr<queue::QpPort>> port_in_turn();
  Result<std::shared_ptr<queue::QpPort>> first_port();
  // The address of a GID; none beyond the table.
  std::optional<os::SocketAddress> gid_address(unsigned index) const;
  int index_of(const ibv_gid& gid) const;
  // The largest path MTU of the interface.
  std::size_t most_mtu() const;

 private:
  VerbsContext(VerbsDevice& device, std::shared_ptr<device::Device> opened,
               std::unique_ptr<device::EventChannel> events);
  Result<std::shared_ptr<queue::QpPort>> port(std::size_t number);

  static constexpr std::size_t kMostPorts = 8;

  VerbsDevice& shown_;
  const std::shared_ptr<device::Device> device_;
  const std::unique_ptr<device::EventChannel> events_;
  std::mutex mutex_;
  std::vector<std::shared_ptr<queue::QpPort>> ports_;
  std::size_t turn_ = 0;
  void* allocation_ = nullptr;
};

}  // namespace weft::verbs
