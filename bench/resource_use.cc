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

// The number of bytes that stands behind `label` in the file `path`.
double bytes_of(const char* path, const char* label) {
  std::ifstream summary(path);
  for (std::string word; summary >> word;) {
    double kibibytes = 0;
    if (word == label && summary >> kibibytes) return kibibytes * 1024;
  }
  die(path, std::string("lacks ") + label);
}

// Pages of shared files are not among these, even if no other process maps them: none counts twice.
double anonymous_bytes() { return bytes_of("/proc/self/smaps_rollup", "Anonymous:"); }

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
  const auto all = [](const auto&) { return true; };
  return {anonymous_bytes(),
          shared_file_bytes(),
          bytes_of("/proc/self/status", "RssShmem:"),
          count("/proc/self/fd", all),
          count("/proc/self/fd", is_socket),
          count("/proc/self/task", all)};
}

ResourceUse growth(const ResourceUse& before, const ResourceUse& after, double count) {
  return {(after.private_bytes - before.private_bytes) / count,
          (after.shared_bytes - before.shared_bytes) / count,
          (after.resident_bytes - before.resident_bytes) / count,
          (after.descriptors - before.descriptors) / count,
          (after.sockets - before.sockets) / count,
          (after.threads - before.threads) / count};
}

}  // namespace weft::bench
