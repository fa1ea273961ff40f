// SPDX-License-Identifier: BSD-2-Clause
// Where do the sentences about refused accesses of a libfabric program go?
#include "device/refusals.h"

#include <atomic>
#include <memory>

#include "base/first_made.h"
#include "base/warning.h"

namespace weft::device {

RefusalLog& refusal_log() {
  static constinit std::atomic<RefusalLog*> log{nullptr};
  return first_made(log, [] { return std::make_unique<RefusalLog>(warn); });
}

}  // namespace weft::device
