// SPDX-License-Identifier: BSD-2-Clause
// How do event channels begin and end? (rdma_create_event_channel(3))
#include "channels.h"

#include <deque>
#include <mutex>
#include <utility>

#include "boundary.h"
#include "cm_space.h"
#include "process_mutex.h"

namespace weft::rdmacm {

void retire(std::shared_ptr<CmChannel> channel) {
  constexpr std::size_t kMost = 16;
  {
    const MutexLock guard(channel->space().lock());
    channel->close();
  }
  std::shared_ptr<CmChannel> oldest;  // ends without the mutex
  const std::lock_guard guard(process_mutex());
  static auto& retired = *new std::deque<std::shared_ptr<CmChannel>>;
  retired.push_back(std::move(channel));
  if (retired.size() <= kMost) return;
  oldest = std::move(retired.front());
  retired.pop_front();
}

}  // namespace weft::rdmacm

extern "C" {

rdma_event_channel* rdma_create_event_channel() {
  weft::rdmacm::CmChannel* made = nullptr;
  const int failed = weft::rdmacm::at_c_border([&]() -> weft::Status {
    auto space = weft::rdmacm::CmSpace::instance();
    if (!space) return space.error();
    auto channel = weft::rdmacm::CmChannel::create(std::move(space).value());
    if (!channel) return channel.error();
    made = channel.value().get();
    return {};
  });
  return failed != 0 ? nullptr : made;
}

void rdma_destroy_event_channel(rdma_event_channel* handle) {
  if (handle == nullptr) return;
  auto& channel = weft::rdmacm::CmChannel::of(handle);
  weft::rdmacm::retire(channel.shared_from_this());
}

}  // extern "C"
