// SPDX-License-Identifier: BSD-2-Clause
// How is a device opened and closed?
#include "context.h"

#include "boundary.h"
#include "operations.h"
#include "verbs/limits.h"

namespace weft::verbs {

Context::Context(VerbsDevice& device, std::unique_ptr<device::EventChannel> events)
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

Context::~Context() { ::pthread_mutex_destroy(&handle()->mutex); }

Result<std::unique_ptr<Context>> Context::open(VerbsDevice& device) {
  auto events = device::EventChannel::open();
  if (!events) return events.error();
  return std::unique_ptr<Context>(new Context(device, std::move(events).value()));
}

}  // namespace weft::verbs

using weft::Result;
using weft::verbs::Context;
using weft::verbs::VerbsDevice;

ibv_context* ibv_open_device(ibv_device* device) {
  if (device == nullptr) return weft::verbs::null_with(EINVAL);
  return weft::verbs::pointer_at_border([&]() -> Result<ibv_context*> {
    auto context = Context::open(VerbsDevice::of(device));
    if (!context) return context.error();
    return std::move(context).value().release()->handle();
  });
}

int ibv_close_device(ibv_context* context) {
  if (context == nullptr) return weft::verbs::status_with(EINVAL);
  delete &Context::of(context);
  return 0;
}
