// SPDX-License-Identifier: BSD-2-Clause
// How does the front end tell its user something? Through libfabric's log, fi_provider(3).
#include "log.h"

#include <atomic>
#include <cerrno>
#include <string>

#include "base/warning.h"
#include "os/cancellation.h"

namespace weft::fabric {
namespace {

// Null while libfabric's log must not be called. Constant-initialised and never destroyed: other
// threads may log while the process ends.
constinit std::atomic<const fi_provider*> g_logging_provider{nullptr};

}  // namespace

void start_log(const fi_provider* provider) {
  g_logging_provider.store(provider);
  set_warning_sink([](const std::string& line) { log_warning(FI_LOG_CORE, "{}", line); });
}

void stop_log() {
  set_warning_sink(nullptr);
  g_logging_provider.store(nullptr);
}

bool log_enabled(fi_log_level level, fi_log_subsys subsystem) noexcept {
  const fi_provider* provider = g_logging_provider.load(std::memory_order_acquire);
  return provider != nullptr && fi_log_enabled(provider, level, subsystem) != 0;
}

void write_log(fi_log_level level, fi_log_subsys subsystem, const LogPlace& where,
               fmt::string_view format, fmt::format_args arguments) noexcept {
  const fi_provider* provider = g_logging_provider.load(std::memory_order_acquire);
  if (provider == nullptr) return;
  const int saved_errno = errno;
  try {
    const os::CancellationOff off;  // of a log that writes to a file or a terminal
    const std::string text = fmt::vformat(format, arguments);
    fi_log(provider, level, subsystem, where.function, where.line, "%s\n", text.c_str());
  } catch (...) {
    // A message that cannot be formatted for lack of memory is lost; the operation goes on.
  }
  errno = saved_errno;
}

}  // namespace weft::fabric
