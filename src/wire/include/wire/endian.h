// SPDX-License-Identifier: BSD-2-Clause
// How are numbers read from and written to packets?
#pragma once

#include <bit>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

namespace weft::wire {

static_assert(std::endian::native == std::endian::little);

// The same number with its bytes in the other order.
template <std::unsigned_integral T>
constexpr T swapped(T value) {
  if constexpr (sizeof(T) == 8) return __builtin_bswap64(value);
  if constexpr (sizeof(T) == 4) return __builtin_bswap32(value);
  if constexpr (sizeof(T) == 2) return __builtin_bswap16(value);
  return value;
}

// Reads a big-endian number at any address, which the caller has checked to be there.
template <std::unsigned_integral T>
T load(const std::byte* at) {
  T raw;
  std::memcpy(&raw, at, sizeof raw);
  return swapped(raw);
}

// Reads a big-endian number of 24 bits.
inline std::uint32_t load24(const std::byte* at) {
  return std::uint32_t{load<std::uint8_t>(at)} << 16 | load<std::uint16_t>(at + 1);
}

// Writes a big-endian number at any address.
template <std::unsigned_integral T>
void store(std::byte* at, std::type_identity_t<T> value) {
  const T raw = swapped(value);
  std::memcpy(at, &raw, sizeof raw);
}

// Writes the lower 24 bits of a number, big-endian.
inline void store24(std::byte* at, std::uint32_t value) {
  store<std::uint8_t>(at, static_cast<std::uint8_t>(value >> 16));
  store<std::uint16_t>(at + 1, static_cast<std::uint16_t>(value));
}

}  // namespace weft::wire
