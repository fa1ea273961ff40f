// SPDX-License-Identifier: BSD-2-Clause
// How does one atomic operation keep all others off the memory that it changes?
#include "memory/stripe_locks.h"

#include <cerrno>
#include <chrono>
#include <thread>
#include <utility>

#include "os/cancellation.h"
#include "os/runtime_dir.h"
#include "os/spin.h"

namespace weft::memory {
namespace {

constexpr unsigned kLooks = 100;  // before the clock is asked; a stripe is held for about 1 us
constexpr auto kAskKernel = std::chrono::milliseconds(1);
constexpr auto kStandstill = std::chrono::seconds(2);
constexpr auto kLockTimeout = std::chrono::seconds(10);
constexpr auto kNap = std::chrono::microseconds(100);

}  // namespace

StripeLocks::StripeLocks(std::shared_ptr<StripeTable> table) : table_(std::move(table)) {
  next_.nonce = static_cast<std::uint32_t>(os::random_number());
}

// In the order of their numbers, which excludes deadlock.
int StripeLocks::lock(std::uint64_t page, std::uint64_t other_page, LockWait wait) {
  if (stripes_ == nullptr) [[unlikely]] {
    stripes_ = table_->stripes();
    if (stripes_ == nullptr) return ENOMEM;
    next_.user = table_->user();
  }
  std::uint32_t first = stripe_of(page);
  std::uint32_t second = stripe_of(other_page);
  if (first > second) std::swap(first, second);
  if (const int error = take(first, wait)) return error;
  if (first == second) return 0;
  const int error = take(second, wait);
  if (error != 0) unlock();
  return error;
}

void StripeLocks::unlock() {
  while (count_ != 0) {
    const Held& held = held_[--count_];
    std::uint64_t mine = held.value;
    // It fails if the word was overwritten and a third user holds the stripe now.
    held.word->compare_exchange_strong(mine, 0, std::memory_order_release,
                                       std::memory_order_relaxed);
  }
}

bool StripeLocks::try_take(std::atomic<std::uint64_t>& word, std::uint64_t from,
                           std::uint64_t mine) {
  if (!word.compare_exchange_strong(from, mine, std::memory_order_acquire,
                                    std::memory_order_relaxed)) {
    return false;
  }
  held_[count_++] = {&word, mine};
  return true;
}

int StripeLocks::take(std::uint32_t stripe, LockWait wait) {
  auto& word = stripes_[stripe].holder;
  ++next_.turn;
  const std::uint64_t mine = next_.pack();
  if (try_take(word, 0, mine)) return 0;
  for (unsigned looks = 0; looks < kLooks; ++looks) {
    spin_pause();
    if (word.load(std::memory_order_relaxed) == 0 && try_take(word, 0, mine)) return 0;
  }
  return wait == LockWait::kBrief ? EBUSY : wait_for(word, mine);
}

// A stripe of a process that never existed, or is dead, counts as free.
bool StripeLocks::is_there(std::uint64_t holder) const {
  const StripeWord word = StripeWord::unpack(holder);
  return word.valid() && table_->is_there(word.user);
}

int StripeLocks::wait_for(std::atomic<std::uint64_t>& word, std::uint64_t mine) {
  const os::Time begin = std::chrono::steady_clock::now();
  std::uint64_t holder = 0;
  os::Time since = begin;  // when this holder was first seen
  for (;;) {
    const std::uint64_t seen = word.load(std::memory_order_relaxed);
    if (seen == 0 && try_take(word, 0, mine)) return 0;
    const os::Time now = std::chrono::steady_clock::now();
    if (seen != holder) since = now;
    holder = seen;
    if (now - begin > kLockTimeout || now - since > kStandstill) return ETIMEDOUT;
    if (now - since < kAskKernel) {
      std::this_thread::yield();
    } else if (!is_there(holder) && try_take(word, holder, mine)) {
      return 0;
    } else {
      os::nap(kNap);
    }
  }
}

}  // namespace weft::memory
