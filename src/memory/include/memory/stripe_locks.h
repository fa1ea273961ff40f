// SPDX-License-Identifier: BSD-2-Clause
// How does one atomic operation keep all others off the memory that it changes?
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include <memory>

#include "memory/stripe_table.h"
#include "os/clock.h"

namespace weft::memory {

// How long a user waits for stripes that others hold.
enum class LockWait {
  kBrief,  // some microseconds
  kUsual,  // until the holder has released them, has died, or has made no progress for two seconds
};

// The stripes that one holder has (at most those of two pages). One thread.
//
// All processes take the stripes of one table, so no help is needed of the process whose memory is
// changed. A stripe of a dead holder goes to the next waiter: the kernel vouches for users by their
// record locks.
class StripeLocks {
 public:
  explicit StripeLocks(std::shared_ptr<StripeTable> table);
  ~StripeLocks() { unlock(); }
  StripeLocks(const StripeLocks&) = delete;
  StripeLocks& operator=(const StripeLocks&) = delete;

  // Takes the stripes of the pages with these numbers (page_numbers.h), which may be equal; none
  // may be held yet. Returns 0, or an errno and nothing is held: EBUSY when the brief patience is
  // over, ETIMEDOUT when a holder that lives has stood still for two seconds, or too many others
  // came before for ten, ENOMEM when there is no table.
  int lock(std::uint64_t page, std::uint64_t other_page, LockWait wait);
  // Lets go of what is held. Idempotent.
  void unlock();

 private:
  int take(std::uint32_t stripe, LockWait wait);
  int wait_for(std::atomic<std::uint64_t>& word, std::uint64_t mine);
  bool is_there(std::uint64_t holder) const;
  bool try_take(std::atomic<std::uint64_t>& word, std::uint64_t from, std::uint64_t mine);

  const std::shared_ptr<StripeTable> table_;
  Stripe* stripes_ = nullptr;  // from the first use on
  StripeWord next_;
  struct Held {
    std::atomic<std::uint64_t>* word;
    std::uint64_t value;
  };
  Held held_[2]{};
  std::size_t count_ = 0;
};

}  // namespace weft::memory
