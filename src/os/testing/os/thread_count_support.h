// SPDX-License-Identifier: BSD-2-Clause
// How many threads does this process have? For tests, which count them right after one has ended.
#pragma once

#include <cstddef>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>

namespace weft::os {

// Whether a thread, by its line of proc(5), is on its way out: that begins before pthread_join(3)
// of it returns, but its line stays for a moment longer.
inline bool is_ending(const std::string& line) {
  constexpr unsigned kExiting = 0x4;  // PF_EXITING of the kernel
  constexpr int kFlags = 7;           // the field, counted from behind the name
  std::size_t at = line.rfind(')');
  for (int field = 0; field < kFlags && at != std::string::npos; ++field) {
    at = line.find(' ', at + 1);
  }
  return at == std::string::npos || (std::stoul(line.substr(at + 1)) & kExiting) != 0;
}

// The threads of this process that have not ended. A thread that goes while the kernel lists the
// threads may take those behind it off the list: it is listed anew until none is on its way out.
inline std::size_t count_threads() {
  constexpr int kTries = 1000;
  std::size_t count = 0;
  for (int i = 0; i < kTries; ++i) {
    bool all_stay = true;
    count = 0;
    for (const auto& task : std::filesystem::directory_iterator("/proc/self/task")) {
      std::ifstream file(task.path() / "stat");
      std::string line;
      const bool stays = std::getline(file, line) && !is_ending(line);
      if (stays) ++count;
      all_stay = all_stay && stays;
    }
    if (all_stay) return count;
    std::this_thread::yield();
  }
  return count;
}

}  // namespace weft::os
