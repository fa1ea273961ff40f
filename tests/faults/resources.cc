// SPDX-License-Identifier: BSD-2-Clause
// How are descriptors, threads, mappings and files counted?
#include "resources.h"

#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <system_error>

#include "failure.h"

namespace weft::faults {

namespace {

std::size_t entries_of(const char* directory) {
  std::size_t count = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator(directory)) ++count;
  return count;
}

}  // namespace

std::string make_runtime_directory(const std::string& name) {
  const std::string path = "/dev/shm/weft-faults-" + name + "-" + std::to_string(getpid());
  std::filesystem::remove_all(path);
  std::filesystem::create_directory(path);
  std::filesystem::permissions(path, std::filesystem::perms::owner_all);
  setenv("WEFT_RUNTIME_DIR", path.c_str(), 1);
  return path;
}

Resources held_by_this_process(const std::string& runtime_directory) {
  Resources held;
  held.descriptors = entries_of("/proc/self/fd");
  held.threads = entries_of("/proc/self/task");
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    if (line.find(runtime_directory) != std::string::npos) ++held.mappings;
  }
  return held;
}

std::string descriptors_of_this_process() {
  std::string text;
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    text += entry.path().filename().string() + " -> " +
            std::filesystem::read_symlink(entry.path(), ignored).string();
    std::ifstream information("/proc/self/fdinfo/" + entry.path().filename().string());
    for (std::string line; std::getline(information, line);) {
      if (line.starts_with("Pid:")) text += ", " + line;
    }
    text += "\n";
  }
  return text;
}

std::string describe(const Resources& resources) {
  return std::to_string(resources.descriptors) + " descriptors, " +
         std::to_string(resources.threads) + " threads, " + std::to_string(resources.mappings) +
         " mappings";
}

std::size_t files_below(const std::string& directory, std::string* names) {
  std::size_t count = 0;
  std::error_code ignored;  // files may vanish while we look
  for (auto at = std::filesystem::recursive_directory_iterator(directory, ignored);
       at != std::filesystem::recursive_directory_iterator(); at.increment(ignored)) {
    if (ignored) break;
    if (at->is_directory(ignored)) continue;
    ++count;
    if (names != nullptr) *names += at->path().string() + "\n";
  }
  return count;
}

}  // namespace weft::faults
