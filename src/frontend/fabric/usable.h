// SPDX-License-Identifier: BSD-2-Clause
// May an object be closed, or does another one still stand on it?
#pragma once

#include <atomic>
#include <utility>

namespace weft::fabric {

// Counts the objects that use this one; fi_close(3) refuses with -FI_EBUSY while there are any.
class Usable {
 public:
  bool in_use() const { return users_.load() != 0; }

 private:
  friend class Use;
  std::atomic<int> users_{0};
};

// One object's use of another; ends with its life.
class Use {
 public:
  Use() = default;
  explicit Use(Usable& used) : used_(&used) { ++used.users_; }
  Use(Use&& other) noexcept : used_(std::exchange(other.used_, nullptr)) {}
  Use& operator=(Use&& other) noexcept {
    std::swap(used_, other.used_);
    return *this;
  }
  ~Use() {
    if (used_ != nullptr) --used_->users_;
  }

 private:
  Usable* used_ = nullptr;
};

}  // namespace weft::fabric
