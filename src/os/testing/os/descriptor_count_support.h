// SPDX-License-Identifier: BSD-2-Clause
// How many descriptors does this process have? For tests, which compare two counts.
#pragma once

#include <cstddef>
#include <filesystem>
#include <iterator>

namespace weft::os {

// With the one that the count itself opens.
inline std::size_t count_descriptors() {
  const std::filesystem::directory_iterator all("/proc/self/fd");
  return static_cast<std::size_t>(std::distance(begin(all), end(all)));
}

}  // namespace weft::os
