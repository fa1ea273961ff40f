// SPDX-License-Identifier: BSD-2-Clause
// How does a program open and close a device? ibv_open_device(3)
#include "boundary.h"
#include "context.h"
#include "operations.h"

using weft::Result;
using weft::verbs::VerbsContext;
using weft::verbs::VerbsDevice;

ibv_context* ibv_open_device(ibv_device* device) {
  if (device == nullptr) return weft::verbs::null_with(EINVAL);
  return weft::verbs::pointer_at_border([&]() -> Result<ibv_context*> {
    auto context = VerbsContext::open(VerbsDevice::of(device));
    if (!context) return context.error();
    ibv_context* const handle = std::move(context).value().release()->handle();
    weft::verbs::fill_operations(VerbsContext::of(handle).extended());
    return handle;
  });
}

int ibv_close_device(ibv_context* context) {
  if (context == nullptr) return weft::verbs::status_with(EINVAL);
  if (VerbsContext::of(context).uses().in_use()) return weft::verbs::status_with(EBUSY);
  delete &VerbsContext::of(context);
  return 0;
}
