// SPDX-License-Identifier: BSD-2-Clause
// Which requests are taken while a flood of forged ones arrives?
#include "request_limiter.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "entries.h"

namespace weft::cm {

bool RequestLimiter::take(const Remote& from, std::uint64_t transaction, Time now) {
  if (from.carrier == Carrier::kMailbox) return true;
  refill(now);
  if (is_short() && (!has_come_before(from, transaction) || credits_ == 0)) return false;
  --credits_;
  return true;
}

void RequestLimiter::give_back(unsigned count) {
  credits_ = std::min(rates_.most, credits_ + count);
}

void RequestLimiter::refill(Time now) {
  const auto pause = std::chrono::nanoseconds(std::chrono::seconds(1)) / rates_.per_second;
  give_back(returned_->collect());
  const auto count = static_cast<std::uint64_t>((now - refilled_) / pause);
  if (count >= rates_.most - credits_) {
    credits_ = rates_.most;
    refilled_ = now;
    seen_.reset();
    return;
  }
  credits_ += static_cast<unsigned>(count);
  refilled_ += count * pause;
}

bool RequestLimiter::has_come_before(const Remote& from, std::uint64_t transaction) {
  if (seen_ == nullptr) seen_ = std::make_unique<Seen>();
  const std::uint64_t address = hash_of(from.address, seed_) ^ from.address.port();
  const std::uint64_t hash = mix(address ^ mix(transaction));
  const std::uint32_t print = static_cast<std::uint32_t>(hash) | 1;  // 0: an empty place
  return std::exchange((*seen_)[(hash >> 32) % seen_->size()], print) == print;
}

}  // namespace weft::cm
