// SPDX-License-Identifier: BSD-2-Clause
// How do event channels begin and end? (rdma_create_event_channel(3))
#include "boundary.h"
#include "cm_channel.h"
#include "cm_space.h"

extern "C" {

rdma_event_channel* rdma_create_event_channel() {
  weft::rdmacm::CmChannel* made = nullptr;
  const int failed = weft::rdmacm::at_c_border([&]() -> weft::Status {
    auto space = weft::rdmacm::CmSpace::instance();
    if (!space) return space.error();
    auto channel = weft::rdmacm::CmChannel::create(std::move(space).value());
    if (!channel) return channel.error();
    made = channel.value().release();
    return {};
  });
  return failed != 0 ? nullptr : made;
}

void rdma_destroy_event_channel(rdma_event_channel* handle) {
  if (handle == nullptr) return;
  auto& channel = weft::rdmacm::CmChannel::of(handle);
  {
    const weft::MutexLock guard(channel.space().lock());
    channel.is_destroyed = true;
    if (channel.readers != 0) return;
  }
  delete &channel;
}

}  // extern "C"
