// SPDX-License-Identifier: BSD-2-Clause
// Do threads of this process sleep? For tests of what wakes them, and of what waiting costs.
#pragma once

#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <functional>
#include <string>
#include <thread>
#include <utility>

namespace weft::os {

// Whether the kernel lets the thread sleep now (proc(5), its state), for an event or a time.
inline bool is_asleep(pid_t thread) {
  std::ifstream file("/proc/self/task/" + std::to_string(thread) + "/stat");
  std::string line;
  std::getline(file, line);
  const std::size_t name = line.rfind(')');
  return name != std::string::npos && name + 2 < line.size() && line[name + 2] == 'S';
}

// Whether all threads of this process but the calling one sleep now.
inline bool all_others_sleep() {
  for (const auto& task : std::filesystem::directory_iterator("/proc/self/task")) {
    const pid_t thread = std::stoi(task.path().filename());
    if (thread != ::gettid() && !is_asleep(thread)) return false;
  }
  return true;
}

// Looks once a millisecond, until `holds` has been true `times` times in a row; false after so many
// looks.
inline bool holds_in_a_row(const std::function<bool()>& holds, int times, int looks) {
  for (int row = 0; looks > 0; --looks) {
    row = holds() ? row + 1 : 0;
    if (row == times) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return false;
}

// Returns once the thread sleeps. One that yields never does: then it returns after 0.1 s.
inline void wait_until_asleep(pid_t thread) {
  holds_in_a_row([thread] { return is_asleep(thread); }, 5, 100);
}

// A thread that acts once the calling thread sleeps.
inline std::thread once_asleep(std::function<void()> act) {
  return std::thread([sleeper = ::gettid(), act = std::move(act)] {
    wait_until_asleep(sleeper);
    act();
  });
}

}  // namespace weft::os
