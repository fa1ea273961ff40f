// SPDX-License-Identifier: BSD-2-Clause
// What stands behind each verbs object?
#include "objects.h"

namespace weft::verbs {

std::uint32_t new_handle() {
  static std::atomic<std::uint32_t> next{1};
  return next.fetch_add(1, std::memory_order_relaxed);
}

}  // namespace weft::verbs
