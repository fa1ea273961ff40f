// SPDX-License-Identifier: BSD-2-Clause
// What is behind the ibv_context of a program?
#pragma once

#include <cstddef>
#include <memory>

#include "abi.h"
#include "base/result.h"
#include "base/usable.h"
#include "device/device.h"
#include "device/event_channel.h"
#include "os/event.h"
#include "os/origin.h"
#include "queue/port_pool.h"
#include "shared_memory/region_memory.h"
#include "verbs_device.h"

namespace weft::verbs {

// An open device. Programs have the address of the ibv_context in it; inline functions of the
// header reach the operations of verbs_context in front of that, those of verbs_exp.h the table
// before it. Binaries of OFED 4 look for a table of theirs there, so the rest must be readable.
class VerbsContext {
 public:
  // Errors: those of eventfd(2) and device::Device::get().
  static Result<std::unique_ptr<VerbsContext>> open(VerbsDevice& device);
  ~VerbsContext();
  VerbsContext(const VerbsContext&) = delete;
  VerbsContext& operator=(const VerbsContext&) = delete;

  static VerbsContext& of(ibv_context* handle) {
    return *reinterpret_cast<VerbsContext*>(reinterpret_cast<std::byte*>(handle) - kBefore);
  }
  ibv_context* handle() { return &memory_.verbs.context; }
  verbs_context& extended() { return memory_.verbs; }
  verbs_context_exp& experimental() { return memory_.experimental; }

  // The device as it was when the context was opened.
  const DeviceState& device() const { return *device_; }
  // The one device of this process behind all of them, and the ports of queue pairs.
  device::Device& core() { return *core_; }
  const std::shared_ptr<device::Device>& shared_core() const { return core_; }
  queue::PortPool& ports() { return ports_; }
  // Asynchronous events (ibv_get_async_event(3)); async_fd is its descriptor.
  device::EventChannel& events() { return *events_; }
  // Counts the objects that stand on it.
  Usable& uses() { return uses_; }
  // How it allocates memory for regions, as the user wanted it when it was opened.
  const shared_memory::AllocatorSettings& allocator() const { return allocator_; }
  // Whether it was opened by a parent of this process, to which it belongs.
  bool inherited() const { return origin_.inherited(); }

 private:
  static constexpr std::size_t kBefore = 4096;
  struct Memory {
    std::byte front[kBefore - offsetof(verbs_context, context) - sizeof(verbs_context_exp)];
    verbs_context_exp experimental;
    verbs_context verbs;
  };
  static_assert(offsetof(Memory, verbs) + offsetof(verbs_context, context) == kBefore);

  VerbsContext(VerbsDevice& device, std::shared_ptr<device::Device> core,
               std::unique_ptr<device::EventChannel> events, os::Event command);

  Memory memory_{};  // first: see of()
  std::shared_ptr<const DeviceState> device_;
  const std::shared_ptr<device::Device> core_;
  queue::PortPool ports_;
  std::unique_ptr<device::EventChannel> events_;
  os::Event command_;  // cmd_fd
  const shared_memory::AllocatorSettings allocator_;
  os::Origin origin_;
  Usable uses_;
};

}  // namespace weft::verbs
