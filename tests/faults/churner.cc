// SPDX-License-Identifier: BSD-2-Clause
// When is the churned region registered and closed, and what is checked in between?
#include "churner.h"

#include <thread>

#include "arena.h"
#include "failure.h"

namespace weft::faults {

namespace {

using Clock = std::chrono::steady_clock;
constexpr std::chrono::seconds kCloseLimit{20};
constexpr std::uint64_t kMark = 0xc105ed;

}  // namespace

Churner::Churner(Node& node, std::uint64_t key, std::uint64_t seed)
    : node_(node),
      key_(key),
      random_(seed),
      memory_(std::make_unique_for_overwrite<std::uint8_t[]>(kChurnBytes)) {
  fill_pattern({memory_.get(), kChurnBytes}, kMark);
  open();
}

void Churner::open() {
  require_ok(node_.register_memory({memory_.get(), kChurnBytes}, key_, region_),
             "fi_mr_reg of the churned region");
  marked_ = false;
}

void Churner::close() {
  const auto begin = Clock::now();
  require_ok(fi_close(&region_.release()->fid), "fi_close of the churned region");
  require(Clock::now() - begin < kCloseLimit, "fi_close of a region took more than 20 s");
  fill_pattern({memory_.get(), kChurnBytes}, kMark);
  marked_ = true;
}

void Churner::require_untouched() const {
  if (marked_)
    require(is_pattern({memory_.get(), kChurnBytes}, kMark), "a closed region was written to");
}

void Churner::step() {
  const auto now = Clock::now();
  if (now < next_) return;
  next_ = now + std::chrono::microseconds(100 + random_() % 300);
  if (region_) {
    close();
  } else {
    require_untouched();
    open();
  }
}

void Churner::finish() {
  if (region_) close();
  std::this_thread::sleep_for(std::chrono::milliseconds(1));  // a late writer gets its chance
  require_untouched();
}

}  // namespace weft::faults
