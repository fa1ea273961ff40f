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
  template <class T>
  friend class UseOf;
  std::atomic<int> users_{0};
};

// One use of an object of a class derived from Usable; ends with its life. Empty: of none.
template <class T>
class UseOf {
 public:
  UseOf() = default;
  explicit UseOf(T& used) : used_(&used) { ++counted().users_; }
  UseOf(UseOf&& other) noexcept : used_(std::exchange(other.used_, nullptr)) {}
  UseOf& operator=(UseOf&& other) noexcept {
    std::swap(used_, other.used_);
    return *this;
  }
  ~UseOf() {
    if (used_ != nullptr) --counted().users_;
  }

  T* get() const { return used_; }
  explicit operator bool() const { return used_ != nullptr; }

 private:
  Usable& counted() const { return *used_; }

  T* used_ = nullptr;
};

using Use = UseOf<Usable>;

// A use of what may be none.
template <class T>
UseOf<T> use_of(T* used) {
  return used != nullptr ? UseOf<T>(*used) : UseOf<T>();
}

}  // namespace weft
