// SPDX-License-Identifier: BSD-2-Clause
// In which order do packets stand whose numbers wrap around?
#pragma once

#include <cstdint>

namespace weft {

// A packet sequence number of InfiniBand: 24 bits, after the last of which comes 0. Two numbers can
// be compared when they are less than 2^23 apart; a requester keeps that (IBTA 9.7.2).
class Psn {
 public:
  static constexpr std::uint32_t kMask = 0xFF'FFFF;

  constexpr Psn() = default;
  // The lower 24 bits of `value`.
  constexpr explicit Psn(std::uint32_t value) : value_(value & kMask) {}

  // The number itself, below 2^24.
  constexpr std::uint32_t value() const { return value_; }
  // The number `steps` packets later, or earlier when negative.
  constexpr Psn after(std::int32_t steps) const {
    return Psn(value_ + static_cast<std::uint32_t>(steps));
  }
  // How many packets later than `other` this is; negative when it is earlier.
  constexpr std::int32_t since(Psn other) const {
    return static_cast<std::int32_t>((value_ - other.value_) << 8) >> 8;
  }
  // True when this is the earlier one.
  constexpr bool before(Psn other) const { return since(other) < 0; }
  friend constexpr bool operator==(Psn, Psn) = default;

 private:
  std::uint32_t value_ = 0;
};

}  // namespace weft
