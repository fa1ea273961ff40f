// SPDX-License-Identifier: BSD-2-Clause
// May an object be closed, or does another one still stand on it?
#pragma once

#include <atomic>
#include <utility>

namespace weft {

// Counts the users of this object, which must not go while there are any (fi_close(3), -FI_EBUSY).
// Any thread.
class Usable {
 public:
  bool in_use() const { return users_.load() != 0; }

 private:
  friend class Use;
  std::atomic<int> users_{0};
};

// One use of an object; ends with its life. Empty: of none.
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

}  // namespace weft
