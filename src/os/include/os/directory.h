// SPDX-License-Identifier: BSD-2-Clause
// Which files does a directory have, and have they changed?
#pragma once

#include <chrono>
#include <string>
#include <string_view>
#include <vector>

namespace weft::os {

// The names in `directory` that begin with `prefix`, in no order; none when it cannot be read.
// Names that begin with a dot are left out.
std::vector<std::string> names_in(const std::string& directory, std::string_view prefix = {});

// Tells whether files came or went since the last look. One thread.
class DirectoryWatch {
 public:
  explicit DirectoryWatch(std::string directory) : directory_(std::move(directory)) {}
  // True in the first call, and in every one before which a file may have come or gone since the
  // call before. Ask first, read the directory then.
  bool changed();

 private:
  using WallTime = std::chrono::time_point<std::chrono::system_clock, std::chrono::nanoseconds>;

  const std::string directory_;
  WallTime seen_{};       // when the directory had changed
  bool settled_ = false;  // that was so long ago that a later change has a later time
};

}  // namespace weft::os
