// SPDX-License-Identifier: BSD-2-Clause
// How do tests share regions between processes, in a /dev/shm of their own?
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "os/child_process_support.h"
#include "os/directory.h"
#include "os/own_process_support.h"
#include "shared_memory/region_memory.h"

namespace weft::shared_memory::testing_support {

inline constexpr std::size_t kPage = 4096;

// Runs `body` in a process with an empty /dev/shm, with those options of tmpfs(5).
inline void in_own_shm(const std::function<void()>& body, const char* options = "size=64m") {
  os::in_own_process("a /dev/shm of its own", [&] {
    if (!os::enter_empty_directories(options)) return false;
    body();
    return true;
  });
}

inline std::vector<std::string> region_names() {
  auto names = os::names_in("/dev/shm", "weft-mr.");
  return names ? std::move(names).value() : std::vector<std::string>{};
}

// Allocates a region that is shared, or fails the test.
inline std::unique_ptr<RegionMemory> share(unsigned grants = 0600, std::size_t length = kPage) {
  auto region = allocate({.length = length, .grants = grants});
  EXPECT_TRUE(region.ok()) << region.error().message;
  if (!region) return nullptr;
  return std::make_unique<RegionMemory>(std::move(region).value());
}

// 0, or the error of an attach.
inline int attach_error(std::uint32_t id, bool writable = false) {
  const auto region = attach({.id = id, .writable = writable});
  return region ? 0 : region.error().code;
}

// A process that shares a region until it is killed.
class Creator {
 public:
  explicit Creator(
      unsigned grants = 0600, std::size_t length = kPage,
      const std::function<bool()>& first = [] { return true; })
      : process_([&] {
          if (!first()) return false;
          static std::unique_ptr<RegionMemory> region;
          region = share(grants, length);
          if (region != nullptr) *id_ = region->id();
          return region != nullptr;
        }) {}
  std::uint32_t id() const { return *id_; }
  void kill() { process_.kill(); }

 private:
  const os::SharedValue<std::uint32_t> id_;
  os::Sleeper process_;
};

}  // namespace weft::shared_memory::testing_support
