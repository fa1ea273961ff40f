// SPDX-License-Identifier: BSD-2-Clause
// Which object closes a file descriptor? The Fd that owns it.
#pragma once

#include <string_view>
#include <utility>

#include "base/result.h"

namespace weft::os {

// Owns one file descriptor, or none (-1).
class Fd {
 public:
  Fd() = default;
  explicit Fd(int fd) : fd_(fd) {}
  Fd(Fd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Fd& operator=(Fd&& other) noexcept {
    if (this != &other) reset(std::exchange(other.fd_, -1));
    return *this;
  }
  ~Fd() { reset(); }

  // The descriptor, or -1.
  int get() const { return fd_; }
  // True when a descriptor is owned.
  bool valid() const { return fd_ >= 0; }
  // Owns nothing any more, and does not close it.
  void forget() { fd_ = -1; }
  // Closes what is owned and owns `fd` from now on.
  void reset(int fd = -1);

 private:
  int fd_ = -1;
};

// True when an error says that this process, or the system, is short of descriptors or memory: the
// same call may succeed later.
bool is_shortage(int error);

// True when an error says that a file system, or RLIMIT_FSIZE, has no room.
bool lacks_room(int error);

// The Error for the current errno: "what: text of errno".
Error last_error(std::string_view what);

}  // namespace weft::os
