// SPDX-License-Identifier: BSD-2-Clause
// Which warnings does the code under test give?
#pragma once

#include <string>
#include <vector>

#include "base/warning.h"

namespace weft {

// Hears them as long as it lives. One at a time; no thread warns at its end.
class HeardWarnings {
 public:
  HeardWarnings() {
    lines.clear();
    set_warning_sink([](const std::string& line) { lines.push_back(line); });
  }
  ~HeardWarnings() { set_warning_sink(nullptr); }
  HeardWarnings(const HeardWarnings&) = delete;
  HeardWarnings& operator=(const HeardWarnings&) = delete;

  static inline std::vector<std::string> lines;
};

}  // namespace weft
