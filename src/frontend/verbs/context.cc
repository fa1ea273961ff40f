// SPDX-License-Identifier: BSD-2-Clause
// How is a device opened and closed?
#include "context.h"

#include "allocator_settings.h"
#include "settings.h"
#include "verbs/limits.h"

namespace weft::verbs {
VerbsContext::VerbsContext(VerbsDevice& device, std::shared_ptr<device::Device> core,
                           std::unique_ptr<device::EventChannel> events, os::Event command)
    : device_(DeviceRegistry::instance.state_of(device)),
      core_(std::move(core)),
      ports_(core_, settings().options.links.shm),
      events_(std::move(events)),
      command_(std::move(command)),
      allocator_(read_allocator_settings(print)) {
  verbs_context& verbs = memory_.verbs;
  verbs.sz = sizeof verbs;
  verbs._ABI_placeholder3 = WEFT_VERBS_CONTEXT_EXP;
  memory_.experimental.sz = sizeof memory_.experimental;
  ibv_context& context = verbs.context;
  context.device = device.handle();
  // No kernel module takes commands. Programs duplicate the descriptor for ibv_import_device(3),
  // which refuses it.
  context.cmd_fd = command_.fd();
  context.async_fd = events_->fd();
  context.num_comp_vectors = Limits::kCompletionVectors;
  context.abi_compat = __VERBS_ABI_IS_EXTENDED;
  ::pthread_mutex_init(&context.mutex, nullptr);
}

VerbsContext::~VerbsContext() { ::pthread_mutex_destroy(&handle()->mutex); }

Result<std::unique_ptr<VerbsContext>> VerbsContext::open(VerbsDevice& device) {
  auto events = device::EventChannel::open();
  if (!events) return events.error();
  auto command = os::Event::create();
  if (!command) return command.error();
  auto core = device::Device::get(settings().options.runtime_dir);
  if (!core) return core.error();
  return std::unique_ptr<VerbsContext>(new VerbsContext(
      device, std::move(core).value(), std::move(events).value(), std::move(command).value()));
}

}  // namespace weft::verbs
