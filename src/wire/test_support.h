// SPDX-License-Identifier: BSD-2-Clause
// How do tests name bytes?
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace weft::wire::testing {

using Bytes = std::vector<std::byte>;

// The bytes that pairs of hexadecimal digits stand for.
inline Bytes from_hex(std::string_view digits) {
  Bytes bytes;
  for (std::size_t i = 0; i + 1 < digits.size(); i += 2) {
    bytes.push_back(
        static_cast<std::byte>(std::stoi(std::string(digits.substr(i, 2)), nullptr, 16)));
  }
  return bytes;
}

}  // namespace weft::wire::testing
