// SPDX-License-Identifier: BSD-2-Clause
// How does a module tell the user of something to be changed outside of the program?
#include "base/warning.h"

#include <mutex>

namespace weft {
namespace {

struct Warnings {
  std::mutex mutex;
  WarningSink sink;
};

// Never destroyed: other threads may warn while the process ends.
Warnings& warnings() {
  static auto* const warnings = new Warnings;
  return *warnings;
}

}  // namespace

void set_warning_sink(const WarningSink& sink) {
  const std::lock_guard guard(warnings().mutex);
  warnings().sink = sink;
}

void warn(const std::string& line) {
  const std::lock_guard guard(warnings().mutex);
  if (warnings().sink) warnings().sink(line);
}

}  // namespace weft
