// SPDX-License-Identifier: BSD-2-Clause
// Where the system says what is in use.
#include "resource_use.h"

#include <sys/statvfs.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>
#include <system_error>

#include "failure.h"

namespace weft::bench {
namespace {

// Pages of shared files are not among these, even if no other process maps them: none counts twice.
double anonymous_bytes() {
  std::ifstream summary("/proc/self/smaps_rollup");
  for (std::string word; summary >> word;) {
    double kibibytes = 0;
    if (word == "Anonymous:" && summary >> kibibytes) return kibibytes * 1024;
  }
  die("/proc/self/smaps_rollup", "tells nothing of anonymous memory");
}

double shared_file_bytes() {
  struct statvfs use {};
  check_system(statvfs("/dev/shm", &use), "statvfs of /dev/shm");
  return static_cast<double>(use.f_blocks - use.f_bfree) * static_cast<double>(use.f_frsize);
}

// How many entries of the directory PATH are what WANTED says.
template <class Wanted>
double count(const char* path, Wanted&& wanted) {
  const std::filesystem::directory_iterator entries(path);
  return static_cast<double>(std::count_if(begin(entries), end(entries), wanted));
}

bool is_socket(const std::filesystem::directory_entry& descriptor) {
  std::error_code closed;  // such as the one that this directory is read through
  return descriptor.is_socket(closed);
}

}  // namespace

ResourceUse resources_in_use() {
  return {anonymous_bytes(), shared_file_bytes(), count("/proc/self/fd", is_socket),
          count("/proc/self/task", [](const auto&) { return true; })};
}

}  // namespace weft::bench
