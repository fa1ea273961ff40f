// SPDX-License-Identifier: BSD-2-Clause
// How does one atomic operation keep all others off the memory that it changes?
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "memory/table_layout.h"
#include "os/clock.h"
#include "os/shared_file.h"

namespace weft::memory {

// How long a user waits for stripes that others hold.
enum class LockWait {
  kBrief,  // some microseconds
  kUsual,  // until the holder has released them, has died, or has made no progress for two seconds
};

// The stripes that one user of a region table holds (at most those of two pages). One thread.
//
// A stripe is a word in the owner's table, so it works between all processes that access the
// owner's memory, the owner's included, and the owner's help is not needed. A stripe of a dead
// holder goes to the next waiter: the kernel vouches for users by their record locks.
class StripeLocks {
 public:
  // `stripes` are the kStripes of the table in `file`; `user` is the number of a record that this
  // process has claimed. What a dead predecessor in that record still held is free again.
  StripeLocks(const os::SharedFile& file, Stripe* stripes, std::uint32_t user);

  // Takes the stripes of the `length` bytes (1 to kStripePage) at `address`; none may be held yet.
  // Returns 0, or an errno and nothing is held: EBUSY when the brief patience is over, ETIMEDOUT
  // when a holder that lives has stood still for two seconds, or too many others came before for
  // ten.
  int lock(std::uint64_t address, std::size_t length, LockWait wait);
  // Lets go of what is held. Idempotent.
  void unlock();

 private:
  int take(std::uint32_t stripe, LockWait wait);
  int wait_for(std::atomic<std::uint64_t>& word, std::uint64_t mine);
  bool is_there(std::uint64_t holder) const;
  bool try_take(std::atomic<std::uint64_t>& word, std::uint64_t from, std::uint64_t mine);

  const os::SharedFile& file_;
  Stripe* const stripes_;
  StripeWord next_;
  struct Held {
    std::atomic<std::uint64_t>* word;
    std::uint64_t value;
  };
  Held held_[2]{};
  std::size_t count_ = 0;
};

}  // namespace weft::memory
