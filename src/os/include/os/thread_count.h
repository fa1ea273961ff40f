// SPDX-License-Identifier: BSD-2-Clause
// How many threads does this process have? For tests, which count them right after one has ended.
#pragma once

#include <cstddef>
#include <filesystem>
#include <fstream>
#include <string>

namespace weft::os {

// Whether a thread, by its line of proc(5), is on its way out: that begins before anybody who joins
// it returns, but its line stays for a moment longer.
inline bool is_ending(const std::string& line) {
  constexpr unsigned kExiting = 0x4;  // PF_EXITING of the kernel
  constexpr int kFlags = 7;           // the field, counted from behind the name
  std::size_t at = line.rfind(')');
  for (int field = 0; field < kFlags && at != std::string::npos; ++field) {
    at = line.find(' ', at + 1);
  }
  return at == std::string::npos || (std::stoul(line.substr(at + 1)) & kExiting) != 0;
}

// The threads of this process that have not ended.
inline std::size_t count_threads() {
  std::size_t count = 0;
  for (const auto& task : std::filesystem::directory_iterator("/proc/self/task")) {
    std::ifstream file(task.path() / "stat");
    std::string line;
    if (std::getline(file, line) && !is_ending(line)) ++count;
  }
  return count;
}

}  // namespace weft::os
