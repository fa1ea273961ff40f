// SPDX-License-Identifier: BSD-2-Clause
// Which files does a directory have, and have they changed?
#include "os/directory.h"

#include <dirent.h>
#include <sys/stat.h>

#include <memory>

#include "os/cancellation.h"
#include "os/fd.h"

namespace weft::os {
namespace {

// The kernel stamps files with the time of its last tick, at most 10 ms ago: changes within one
// tick have one time.
constexpr auto kTick = std::chrono::milliseconds(20);

}  // namespace

Result<std::vector<std::string>> names_in(const std::string& directory, std::string_view prefix) {
  const CancellationOff off;
  std::vector<std::string> names;
  const std::unique_ptr<DIR, int (*)(DIR*)> listing(::opendir(directory.c_str()), ::closedir);
  if (listing == nullptr) return last_error(directory);
  while (const dirent* entry = ::readdir(listing.get())) {
    const std::string_view name = entry->d_name;
    if (name[0] != '.' && name.starts_with(prefix)) names.emplace_back(name);
  }
  return names;
}

bool DirectoryWatch::changed() {
  struct stat info {};
  if (::stat(directory_.c_str(), &info) != 0) return true;
  const WallTime modified{std::chrono::seconds(info.st_mtim.tv_sec) +
                          std::chrono::nanoseconds(info.st_mtim.tv_nsec)};
  if (settled_ && modified == seen_) return false;
  seen_ = modified;
  settled_ = std::chrono::system_clock::now() - modified > kTick;
  return true;
}

}  // namespace weft::os
