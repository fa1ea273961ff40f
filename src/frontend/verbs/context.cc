// SPDX-License-Identifier: BSD-2-Clause
// How is a device opened and closed?
#include "context.h"

#include "boundary.h"
#include "operations.h"
#include "verbs/limits.h"

namespace weft::verbs {

DeviceContext::DeviceContext(VerbsDevice& device, std::unique_ptr<device::EventChannel> events)
    : device_(DeviceRegistry::instance().state_of(device)), events_(std::move(events)) {
  verbs_context& verbs = memory_.verbs;
  fill_operations(verbs);
  verbs.sz = sizeof verbs;
  ibv_context& context = verbs.context;
  context.device = device.handle();
  context.cmd_fd = -1;  // there is no kernel module to talk to
  context.async_fd = events_->fd();
  context.num_comp_vectors = Limits::kCompletionVectors;
  context.abi_compat = __VERBS_ABI_IS_EXTENDED;
  ::pthread_mutex_init(&context.mutex, nullptr);
}

DeviceContext::~DeviceContext() { ::pthread_mutex_destroy(&handle()->mutex); }

Result<std::unique_ptr<DeviceContext>> DeviceContext::open(VerbsDevice& device) {
  auto events = device::EventChannel::open();
  if (!events) return events.error();
  return std::unique_ptr<DeviceContext>(new DeviceContext(device, std::move(events).value()));
}

}  // namespace weft::verbs

using weft::Result;
using weft::verbs::DeviceContext;
using weft::verbs::VerbsDevice;

ibv_context* ibv_open_device(ibv_device* device) {
  if (device == nullptr) return weft::verbs::null_with(EINVAL);
  return weft::verbs::pointer_at_border([&]() -> Result<ibv_context*> {
    auto context = DeviceContext::open(VerbsDevice::of(device));
    if (!context) return context.error();
    return std::move(context).value().release()->handle();
  });
}

int ibv_close_device(ibv_context* context) {
  if (context == nullptr) return weft::verbs::status_with(EINVAL);
  delete &DeviceContext::of(context);
  return 0;
}
