// SPDX-License-Identifier: BSD-2-Clause
// How do event channels begin and end? (rdma_create_event_channel(3))
#include <deque>
#include <memory>
#include <mutex>

#include "boundary.h"
#include "cm_channel.h"
#include "cm_space.h"

namespace weft::rdmacm {
namespace {

// Some programs, as rping, destroy a channel while a thread of theirs is inside of
// rdma_get_cm_event(3), or about to call it again, and then exit. The thread finds the channel,
// and waits there.
void retire(std::unique_ptr<CmChannel> channel) {
  constexpr std::size_t kMost = 16;
  static auto& mutex = *new std::mutex;
  static auto& retired = *new std::deque<std::unique_ptr<CmChannel>>;
  {
    const MutexLock guard(channel->space().lock());
    channel->close();
  }
  const std::lock_guard guard(mutex);
  retired.push_back(std::move(channel));
  if (retired.size() <= kMost) return;
  std::unique_ptr<CmChannel> oldest = std::move(retired.front());
  retired.pop_front();
  const MutexLock space_guard(oldest->space().lock());
  if (oldest->readers != 0) static_cast<void>(oldest.release());
}

}  // namespace
}  // namespace weft::rdmacm

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
  weft::rdmacm::retire(
      std::unique_ptr<weft::rdmacm::CmChannel>(&weft::rdmacm::CmChannel::of(handle)));
}

}  // extern "C"
