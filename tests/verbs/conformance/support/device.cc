// SPDX-License-Identifier: BSD-2-Clause
// Which device do the tests use, and how long do they wait for it?
#include "device.h"

#include <poll.h>

namespace weft::verbs_conformance {

std::chrono::seconds patience() { return std::chrono::seconds(20); }

Owned<ibv_context> open_device() {
  int count = 0;
  ibv_device** const list = ibv_get_device_list(&count);
  EXPECT_NE(list, nullptr);
  EXPECT_GT(count, 0);
  if (list == nullptr || count == 0) return nullptr;
  Owned<ibv_context> context(ibv_open_device(list[0]));
  ibv_free_device_list(list);
  EXPECT_NE(context, nullptr);
  return context;
}

ibv_gid gid_of(ibv_context* context) {
  ibv_gid gid{};
  EXPECT_EQ(ibv_query_gid(context, 1, 0, &gid), 0);
  return gid;
}

std::optional<ibv_async_event> next_event(ibv_context* context, std::chrono::milliseconds within) {
  pollfd look{context->async_fd, POLLIN, 0};
  if (::poll(&look, 1, static_cast<int>(within.count())) != 1) return std::nullopt;
  ibv_async_event event{};
  if (ibv_get_async_event(context, &event) != 0) return std::nullopt;
  ibv_ack_async_event(&event);
  return event;
}

ibv_async_event await_event(ibv_context* context) {
  const auto event = next_event(context, patience());
  EXPECT_TRUE(event.has_value()) << "no event in time";
  return event.value_or(ibv_async_event{{}, IBV_EVENT_DEVICE_FATAL});
}

}  // namespace weft::verbs_conformance
