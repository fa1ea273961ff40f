// SPDX-License-Identifier: BSD-2-Clause
// What did the user set for verbs programs?
#include "settings.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdio>
#include <memory>
#include <optional>

#include "base/first_made.h"
#include "base/warning.h"
#include "os/environment.h"

namespace weft::verbs {
namespace {

// Both front ends of a process take the same variables; the prefix of libfabric's comes first
// there, too.
constexpr std::array<std::string_view, 2> kPrefixes = {"FI_WEFT_", "WEFT_"};
constexpr char kNameVariable[] = "WEFT_DEVICE_NAME";
constexpr char kLogVariable[] = "WEFT_LOG";
constexpr std::size_t kLongestPattern = 50;  // ibv_device has room for 63 characters

// One %d, and nothing that a path or a list of names could not hold.
bool is_pattern(const std::string& text) {
  const std::size_t number = text.find("%d");
  if (number == std::string::npos || text.size() > kLongestPattern) return false;
  return std::ranges::count(text, '%') == 1 && text.find_first_of("/:, \t\n") == std::string::npos;
}

std::string read_names(const WarningSink& warn) {
  std::string names = os::environment(kNameVariable);
  if (names.empty() || is_pattern(names)) return names;
  warn(fmt::format("{}={}: not a name of at most {} characters with one %d; the default is used",
                   kNameVariable, names, kLongestPattern));
  return "";
}

bool read_log(const WarningSink& warn) {
  const std::string text = os::environment(kLogVariable);
  const std::optional<bool> on = parse_truth(text);
  if (!on && !text.empty()) {
    warn(fmt::format("{}={}: neither on nor off; off is used", kLogVariable, text));
  }
  return on.value_or(false);
}

}  // namespace

void print(const std::string& line) { std::fprintf(stderr, "weft: %s\n", line.c_str()); }

VerbsSettings read_settings(const WarningSink& warn) {
  return {Options::from_environment(kPrefixes, warn), read_names(warn), read_log(warn)};
}

const VerbsSettings& settings() {
  static constinit std::atomic<const VerbsSettings*> settings{nullptr};
  return first_made(settings, [] {
    set_warning_sink(print);
    return std::make_unique<const VerbsSettings>(read_settings(print));
  });
}

RefusalLog& refusal_log() {
  static constinit std::atomic<RefusalLog*> log{nullptr};
  return first_made(
      log, [] { return std::make_unique<RefusalLog>(settings().logs ? print : WarningSink{}); });
}

std::string device_name(const std::string& pattern, unsigned number) {
  std::string name = pattern;
  return name.replace(name.find("%d"), 2, std::to_string(number));
}

}  // namespace weft::verbs
