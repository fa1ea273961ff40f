// SPDX-License-Identifier: BSD-2-Clause
// Which files does a directory have, and have they changed?
#pragma once

#include <chrono>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace weft::os {

// The names in `directory` that begin with `prefix`, in no order. Names that begin with a dot are
// left out. Errors: those of opendir(3).
Result<std::vector<std::string>> names_in(const std::string& directory,
                                          std::string_view prefix = {});

// Tells whether files came or went since the last look. One thread.
class DirectoryWatch {
 public:
  explicit DirectoryWatch(std::string directory) : directory_(std::move(directory)) {}
  // True in the first call, and in every one before which a file may have come or gone since the
  // call before. Ask first, read the directory then.
  bool changed();
  // Has the next call find a change: what was read was not all.
  void look_again() { settled_ = false; }

 private:
  using WallTime = std::chrono::time_point<std::chrono::system_clock, std::chrono::nanoseconds>;

  const std::string directory_;
  WallTime seen_{};       // when the directory had changed
  bool settled_ = false;  // that was so long ago that a later change has a later time
};

}  // namespace weft::os
