// SPDX-License-Identifier: BSD-2-Clause
// How are credits returned to the connection manager that has forwarded a request?
#pragma once

#include <atomic>
#include <cstdint>

namespace weft {

// Credits on their way back to the connection manager that has taken requests
// (cm/options.h, RequestRates). Any thread.
class RequestCredits {
 public:
  // The requester of one request is known to receive the answers to it.
  void give_back() { returned_.fetch_add(1, std::memory_order_relaxed); }
  // Those since the last call.
  std::uint32_t collect() {
    if (returned_.load(std::memory_order_relaxed) == 0) return 0;
    return returned_.exchange(0, std::memory_order_relaxed);
  }

 private:
  std::atomic<std::uint32_t> returned_ = 0;
};

}  // namespace weft
