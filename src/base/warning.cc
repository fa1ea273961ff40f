// SPDX-License-Identifier: BSD-2-Clause
// How does a module tell the user of something to be changed outside of the program?
#include "base/warning.h"

#include <atomic>

namespace weft {
namespace {

// Without a lock, which a forked child might find held.
constinit std::atomic<void (*)(const std::string&)> current{nullptr};

}  // namespace

void set_warning_sink(void (*sink)(const std::string& line)) { current = sink; }

void warn(const std::string& line) {
  if (auto* const sink = current.load()) sink(line);
}

}  // namespace weft
