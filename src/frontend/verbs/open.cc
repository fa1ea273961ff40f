// SPDX-License-Identifier: BSD-2-Clause
// How does a program open and close a device? ibv_open_device(3)
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "boundary.h"
#include "context.h"
#include "operations.h"
#include "os/at_fork.h"

using weft::Result;
using weft::verbs::VerbsContext;
using weft::verbs::VerbsDevice;

namespace {

constinit std::mutex mutex;
weft::os::AtFork at_fork(8, mutex);

// rdma-core closes a device beside objects that are left, and perftest leaves a completion queue.
// Here the context goes with a later close after its last object. Never destroyed: programs close
// devices at any time.
void close_when_unused(std::unique_ptr<VerbsContext> context) {
  const std::lock_guard guard(mutex);
  static auto& closed = *new std::vector<std::unique_ptr<VerbsContext>>;
  closed.push_back(std::move(context));
  std::erase_if(closed, [](const auto& each) { return !each->uses().in_use(); });
}

}  // namespace

ibv_context* ibv_open_device(ibv_device* device) {
  if (device == nullptr) return weft::verbs::null_with(EINVAL);
  return weft::verbs::pointer_at_border([&]() -> Result<ibv_context*> {
    auto context = VerbsContext::open(VerbsDevice::of(device));
    if (!context) return context.error();
    ibv_context* const handle = std::move(context).value().release()->handle();
    weft::verbs::fill_operations(VerbsContext::of(handle).extended());
    weft::verbs::fill_operations(VerbsContext::of(handle).experimental());
    return handle;
  });
}

int ibv_close_device(ibv_context* context) {
  if (context == nullptr) return weft::verbs::status_with(EINVAL);
  return weft::verbs::status_at_c_border([&] {
    close_when_unused(std::unique_ptr<VerbsContext>(&VerbsContext::of(context)));
    return 0;
  });
}
