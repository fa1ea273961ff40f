// SPDX-License-Identifier: BSD-2-Clause
// Where are refused accesses of a libfabric program told and counted?
#include "device/refusals.h"

#include <atomic>
#include <memory>

#include "base/first_made.h"
#include "base/warning.h"
#include "memory/access_guard.h"

namespace weft::device {

using memory::AccessError;

RefusalLog& refusal_log() {
  static constinit std::atomic<RefusalLog*> log{nullptr};
  return first_made(log, [] { return std::make_unique<RefusalLog>(warn); });
}

Stat refusal_counter(int reason) {
  constexpr int kFirst = static_cast<int>(AccessError::kUnknownKey);
  constexpr int kLast = static_cast<int>(memory::kLastAccessError);
  constexpr int kFirstCounter = static_cast<int>(Stat::kRefusedUnknownKey);
  static_assert(static_cast<Stat>(kFirstCounter + kLast - kFirst) ==
                Stat::kRefusedOtherAuthorization);
  if (reason == static_cast<int>(AccessError::kNotMapped)) return Stat::kRefusedNotMapped;
  if (reason > kLast) return Stat::kRefusedLocalBuffer;
  return static_cast<Stat>(kFirstCounter + reason - kFirst);
}

}  // namespace weft::device
