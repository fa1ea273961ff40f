// SPDX-License-Identifier: BSD-2-Clause
// Which bytes do tests put into packets?
#pragma once

#include <cstddef>
#include <cstdint>
#include <random>
#include <vector>

namespace weft::roce::testing {

using Bytes = std::vector<std::byte>;

// Bytes that tell where they belong: a lost, doubled or shifted piece shows.
inline Bytes pattern(std::size_t length, std::uint64_t seed) {
  Bytes bytes(length);
  std::mt19937_64 random(seed);
  for (auto& byte : bytes) byte = static_cast<std::byte>(random());
  return bytes;
}

}  // namespace weft::roce::testing
