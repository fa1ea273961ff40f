// SPDX-License-Identifier: BSD-2-Clause
// Where the kernel tells how much memory is in use.
#include "memory_use.h"

#include <sys/statvfs.h>

#include <fstream>
#include <string>

#include "failure.h"

namespace weft::bench {
namespace {

// Pages of shared files are not among these, whoever else maps them: nothing is counted twice.
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

}  // namespace

MemoryUse memory_in_use() { return {anonymous_bytes(), shared_file_bytes()}; }

}  // namespace weft::bench
