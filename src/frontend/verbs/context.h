// SPDX-License-Identifier: BSD-2-Clause
// What is behind the ibv_context of a program?
#pragma once

#include <cstddef>
#include <memory>

#include "abi.h"
#include "base/result.h"
#include "device/event_channel.h"
#include "os/origin.h"
#include "verbs_device.h"

namespace weft::verbs {

// An open device. Programs have the address of the ibv_context in it; inline functions of the
// header reach the operations of verbs_context in front of that, and programs of OFED 4 look for
// more of them before those, which must be readable.
class DeviceContext {
 public:
  // Errors: those of eventfd(2).
  static Result<std::unique_ptr<DeviceContext>> open(VerbsDevice& device);
  ~DeviceContext();
  DeviceContext(const DeviceContext&) = delete;
  DeviceContext& operator=(const DeviceContext&) = delete;

  static DeviceContext& of(ibv_context* handle) {
    return *reinterpret_cast<DeviceContext*>(reinterpret_cast<std::byte*>(handle) - kBefore);
  }
  ibv_context* handle() { return &memory_.verbs.context; }

  // The device as it was when the context was opened.
  const DeviceState& device() const { return *device_; }
  // Asynchronous events (ibv_get_async_event(3)); async_fd is its descriptor.
  device::EventChannel& events() { return *events_; }
  // Whether it was opened by a parent of this process, to which it belongs.
  bool inherited() const { return origin_.inherited(); }

 private:
  static constexpr std::size_t kBefore = 4096;
  struct Memory {
    std::byte front[kBefore - offsetof(verbs_context, context)];
    verbs_context verbs;
  };
  static_assert(offsetof(Memory, verbs) + offsetof(verbs_context, context) == kBefore);

  DeviceContext(VerbsDevice& device, std::unique_ptr<device::EventChannel> events);

  Memory memory_{};  // first: see of()
  std::shared_ptr<const DeviceState> device_;
  std::unique_ptr<device::EventChannel> events_;
  os::Origin origin_;
};

}  // namespace weft::verbs
