// SPDX-License-Identifier: BSD-2-Clause
// Which number does the next communication id have?
#pragma once

#include <cstdint>

namespace weft::cm {

// Mixes the bits of a number.
inline std::uint64_t mix(std::uint64_t value) {  // splitmix64
  value += 0x9E3779B97F4A7C15;
  value = (value ^ value >> 30) * 0xBF58476D1CE4E5B9;
  value = (value ^ value >> 27) * 0x94D049BB133111EB;
  return value ^ value >> 31;
}

// All numbers from 1 to 65535, each once, in an order that no peer can predict from those that it
// has seen; then all again in another order. A number that is not given again soon keeps late
// messages away from other connections. One that cannot be predicted keeps an attacker off the path
// from answering a REP that it has not received.
class IdNumbers {
 public:
  static constexpr std::uint16_t kLast = 0xFFFF;

  // `key` is a random number that no peer knows.
  explicit IdNumbers(std::uint64_t key) : key_(mix(key)) {}

  std::uint16_t next() {
    std::uint16_t number = 0;
    while (number == 0) {
      number = permuted(given_);
      if (++given_ == 0) key_ = mix(key_);
    }
    return number;
  }

 private:
  // A Feistel network: a bijection whatever the key is.
  std::uint16_t permuted(std::uint16_t place) const {
    constexpr unsigned kRounds = 8;
    unsigned left = place >> 8;
    unsigned right = place & 0xFF;
    for (unsigned round = 0; round < kRounds; ++round) {
      const auto mask = static_cast<unsigned>(mix(key_ + (round << 8 | right)) >> 56);
      const unsigned mixed = left ^ mask;
      left = right;
      right = mixed;
    }
    return static_cast<std::uint16_t>(left << 8 | right);
  }

  std::uint64_t key_;
  std::uint16_t given_ = 0;  // in this order
};

}  // namespace weft::cm
