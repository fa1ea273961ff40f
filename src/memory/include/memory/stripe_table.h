// SPDX-License-Identifier: BSD-2-Clause
// Which locks do the atomic operations of all processes share?
//
// One file in the directory of the shared files, with a word for each stripe. All its users own it
// together: the last one removes it. Each user claims a record by a record lock, and its words name
// that record.
//
//   byte i * sizeof(Stripe)   stripe i: the locks of all pages with the number i modulo kStripes
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <string>

#include "base/result.h"
#include "base/types.h"
#include "os/mapping.h"
#include "os/shared_file.h"

namespace weft::memory {

inline constexpr std::uint32_t kStripes = 1024;
inline constexpr std::uint32_t kMaxStripeUsers = 8192;  // processes

// The lock of some pages: see stripe_of().
struct alignas(kCacheLine) Stripe {
  std::atomic<std::uint64_t> holder;  // 0, or a StripeWord
};

// Which stripe the page with this number belongs to (page_numbers.h). It is a matter of the memory
// and not of the region: regions may overlap.
constexpr std::uint32_t stripe_of(std::uint64_t page) {
  return static_cast<std::uint32_t>(page % kStripes);
}

// The holder of a stripe. No two turns of any two holders look alike for a long time, so that a
// word can be taken over if it is the same as a moment ago.
struct StripeWord {
  std::uint32_t user = 0;   // number of the process's record
  std::uint32_t turn = 0;   // how often the holder has taken a stripe, 18 bits
  std::uint32_t nonce = 0;  // random, of the holder

  constexpr std::uint64_t pack() const {
    return std::uint64_t{user + 1} | std::uint64_t{turn & 0x3ffff} << 14 |
           std::uint64_t{nonce} << 32;
  }
  static constexpr StripeWord unpack(std::uint64_t word) {
    return {static_cast<std::uint32_t>(word & 0x3fff) - 1,
            static_cast<std::uint32_t>(word >> 14 & 0x3ffff),
            static_cast<std::uint32_t>(word >> 32)};
  }
  // False for what no user writes.
  constexpr bool valid() const { return user < kMaxStripeUsers; }
};
static_assert(kMaxStripeUsers < 0x3fff);

// The stripes that one process shares with others. Any thread.
class StripeTable {
 public:
  // The stripes of all processes that share `directory`. Opened by the first use.
  explicit StripeTable(std::string directory) : directory_(std::move(directory)) {}
  ~StripeTable();
  StripeTable(const StripeTable&) = delete;
  StripeTable& operator=(const StripeTable&) = delete;

  // The kStripes words. They are this process's own, without other users, where there is no
  // directory or no file can be made in it; a warning says so in the second case. Null when not
  // even these can be had.
  Stripe* stripes() {
    Stripe* const known = stripes_.load(std::memory_order_acquire);
    return known != nullptr ? known : open();
  }
  // The number of this process's record. After stripes().
  std::uint32_t user() const { return user_; }
  // Does the process of that record live?
  bool is_there(std::uint32_t user) const;

 private:
  Stripe* open();
  Status open_file();
  Status claim_record();

  const std::string directory_;
  std::mutex mutex_;  // of opening
  os::SharedFilePtr file_;
  os::Mapping memory_;
  std::uint32_t user_ = 0;
  std::atomic<Stripe*> stripes_ = nullptr;
};

}  // namespace weft::memory
