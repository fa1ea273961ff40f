// SPDX-License-Identifier: BSD-2-Clause
// How does the front end tell its user something? Through libfabric's log, fi_provider(3).
//
// Nothing is printed unless FI_LOG_LEVEL asks for it. Any thread may log at any time: before
// start_log() and after stop_log() messages are dropped, because libfabric's own log is not ready
// then. errno is kept.
#pragma once

#include <fmt/format.h>
#include <rdma/providers/fi_log.h>

#include <type_traits>
#include <utility>

namespace weft::fabric {

// Begins to log in the name of `provider`, which must live until stop_log().
void start_log(const fi_provider* provider);
// Drops every later message.
void stop_log();

// Where a message comes from.
struct LogPlace {
  const char* function;
  int line;
};

// A format string of fmt with the place where it stands. (clang 14 has no std::source_location.)
template <class... Arguments>
struct LogFormat {
  template <class Text>
  consteval LogFormat(const Text& format, const char* function = __builtin_FUNCTION(),
                      int line = __builtin_LINE())
      : text(format), where{function, line} {}

  fmt::format_string<Arguments...> text;
  LogPlace where;
};

// True when a message of this level and subsystem would be printed.
bool log_enabled(fi_log_level level, fi_log_subsys subsystem) noexcept;
// Prints one line.
void write_log(fi_log_level level, fi_log_subsys subsystem, const LogPlace& where,
               fmt::string_view format, fmt::format_args arguments) noexcept;

// Something that the user should change: a bad setting, a wrong use of a call.
template <class... Arguments>
void log_warning(fi_log_subsys subsystem, LogFormat<std::type_identity_t<Arguments>...> format,
                 Arguments&&... arguments) noexcept {
  if (!log_enabled(FI_LOG_WARN, subsystem)) return;
  write_log(FI_LOG_WARN, subsystem, format.where, format.text, fmt::make_format_args(arguments...));
}

// Something that explains what weft did: a refused hint, a peer that went away.
template <class... Arguments>
void log_info(fi_log_subsys subsystem, LogFormat<std::type_identity_t<Arguments>...> format,
              Arguments&&... arguments) noexcept {
  if (!log_enabled(FI_LOG_INFO, subsystem)) return;
  write_log(FI_LOG_INFO, subsystem, format.where, format.text, fmt::make_format_args(arguments...));
}

}  // namespace weft::fabric
