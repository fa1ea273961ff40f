// SPDX-License-Identifier: BSD-2-Clause
// Which file does a region's id name?
#include "region_name.h"

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <utility>

#include "os/at_fork.h"
#include "os/directory.h"
#include "os/runtime_dir.h"

namespace weft::shared_memory {
namespace {

constexpr unsigned kRank = 2;
constexpr const char* kDirectory = "/dev/shm";
constexpr const char* kPrefix = "weft-mr.";

// The last id of this process; 0 before the first. A child begins at a random one of its own.
std::atomic<std::uint32_t> last_id{0};
os::AtFork at_fork(kRank, [] { last_id = 0; });

std::uint32_t next_id() {
  std::uint32_t last = last_id;
  for (;;) {
    std::uint32_t next = last != 0 ? last + 1 : static_cast<std::uint32_t>(os::random_number());
    if (next == 0) next = 1;
    if (last_id.compare_exchange_weak(last, next)) return next;
  }
}

// The names of a region begin so.
std::string prefix_of(std::uint32_t id) {
  char text[16];
  std::snprintf(text, sizeof text, "%08x.", id);
  return std::string(kPrefix) + text;
}

std::string random_generation() {
  char text[17];
  std::snprintf(text, sizeof text, "%016llx", static_cast<unsigned long long>(os::random_number()));
  return text;
}

}  // namespace

// Another process may have the same id, by chance or since it counts ahead of this one: then each
// of the two that sees the other takes another one, somewhere else.
Result<std::uint32_t> publish_region(os::PublishedFile& file, unsigned grants) {
  constexpr int kTries = 16;
  for (int i = 0; i < kTries; ++i) {
    const std::uint32_t id = next_id();
    const std::string path = region_directory() + "/" + prefix_of(id) + random_generation();
    if (Status named = file.publish(path, grants); !named) return named.error();
    const auto files = files_of_region(id);
    if (!files) return files.error();
    if (files.value().size() == 1) return id;
    last_id = 0;
  }
  return Error{EADDRINUSE, "files in " + region_directory() + " have each id that was tried"};
}

Result<std::vector<std::string>> files_of_region(std::uint32_t id) {
  auto names = os::names_in(kDirectory, prefix_of(id));
  if (!names) return names;
  for (std::string& name : names.value()) name.insert(0, region_directory() + "/");
  return names;
}

void sweep_regions() { os::sweep_published(kDirectory, kPrefix); }

std::string region_directory() { return kDirectory; }

}  // namespace weft::shared_memory
