// SPDX-License-Identifier: BSD-2-Clause
// Where does a fuzzer keep its shared files, and how does it see what was written that must not be?
#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <filesystem>
#include <string>

#include "base/types.h"
#include "input.h"

namespace weft::fuzz {

// A directory of shared files for one process, removed when it ends.
class Directory {
 public:
  Directory() {
    char name[] = "/dev/shm/weft-fuzz-XXXXXX";
    require(::mkdtemp(name) != nullptr, "no directory in /dev/shm");
    path_ = name;
  }
  ~Directory() {
    std::error_code ignored;
    if (::getpid() == creator_) std::filesystem::remove_all(path_, ignored);
  }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
  const pid_t creator_ = ::getpid();
};

// Buffers of the victim. Whatever is not lent out must keep its filling.
class Buffers {
 public:
  static constexpr std::size_t kCount = 4;
  static constexpr std::size_t kRoom = 20 * 1024;
  static constexpr unsigned char kFilling = 0xa5;

  Buffers() { std::memset(memory_.data(), kFilling, memory_.size()); }

  // A buffer that may be written from now on, or nothing when all are lent.
  LocalRange* lend() {
    for (std::size_t i = 0; i < kCount; ++i) {
      if (lent_[i].base != nullptr) continue;
      lent_[i] = {memory_.data() + i * 2 * kRoom + kRoom / 2, kRoom};
      return &lent_[i];
    }
    return nullptr;
  }
  // It must not be written any more.
  void take_back(LocalRange* lent) {
    std::memset(lent->base, kFilling, lent->length);
    lent->base = nullptr;
  }
  void check() const {
    static const std::array<unsigned char, kRoom> intact = [] {
      std::array<unsigned char, kRoom> bytes{};
      bytes.fill(kFilling);
      return bytes;
    }();
    for (std::size_t i = 0; i < kCount; ++i) {
      const unsigned char* at = memory_.data() + i * 2 * kRoom;
      require(std::memcmp(at, intact.data(), kRoom / 2) == 0 &&
                  std::memcmp(at + kRoom * 3 / 2, intact.data(), kRoom / 2) == 0,
              "memory beside a buffer was written");
      require(lent_[i].base != nullptr || std::memcmp(at + kRoom / 2, intact.data(), kRoom) == 0,
              "a buffer was written that was not lent");
    }
  }

 private:
  std::array<unsigned char, 2 * kRoom * kCount> memory_;
  std::array<LocalRange, kCount> lent_{};
};

}  // namespace weft::fuzz
