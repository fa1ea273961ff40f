// SPDX-License-Identifier: BSD-2-Clause
// Which device do the tests use, and how long do they wait for it?
#pragma once

#include <chrono>
#include <optional>

#include "objects.h"

namespace weft::verbs_conformance {

// Far more than anything takes: a test that waits as long has failed.
std::chrono::seconds patience();

// Opens the first device, whose interface WEFT_IFACE names.
Owned<ibv_context> open_device();

// The first GID of the device, which is the peer's, too.
ibv_gid gid_of(ibv_context* context);

// The next asynchronous event of a context, acknowledged; none when there is none in that time.
std::optional<ibv_async_event> next_event(ibv_context* context, std::chrono::milliseconds within);
// The same for an event that must come.
ibv_async_event await_event(ibv_context* context);

// Calls until it holds, or patience() is over: false then.
template <class Condition>
bool holds_in_time(const Condition& condition) {
  const auto end = std::chrono::steady_clock::now() + patience();
  while (!condition()) {
    if (std::chrono::steady_clock::now() > end) return false;
  }
  return true;
}

}  // namespace weft::verbs_conformance
