// SPDX-License-Identifier: BSD-2-Clause
// How does the user want memory of regions to be allocated?
#include "allocator_settings.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <string>
#include <string_view>

#include "os/environment.h"

namespace weft::verbs {
namespace {

using shared_memory::AllocationType;
using shared_memory::AllocatorSettings;

constexpr char kTypeVariable[] = "MLX_MR_ALLOC_TYPE";
constexpr char kMaxVariable[] = "MLX_MR_MAX_LOG2_CONTIG_BSIZE";
constexpr char kMinVariable[] = "MLX_MR_MIN_LOG2_CONTIG_BSIZE";
constexpr unsigned kLeastOrder = 12;
constexpr unsigned kMostOrder = 23;

struct TypeName {
  std::string_view name;
  AllocationType type;
};
// The manual names the first three; the others stand in scripts that set the types of queues, too.
constexpr std::array<TypeName, 6> kTypes = {{
    {"ALL", AllocationType::kAll},
    {"ANON", AllocationType::kAnonymous},
    {"CONTIG", AllocationType::kContiguous},
    {"HUGE", AllocationType::kAll},
    {"PREFER_HUGE", AllocationType::kAll},
    {"PREFER_CONTIG", AllocationType::kAll},
}};

char upper(char letter) {
  return letter >= 'a' && letter <= 'z' ? static_cast<char>(letter - 'a' + 'A') : letter;
}

AllocationType read_type(AllocationType preset, const WarningSink& warn) {
  const std::string text = os::environment(kTypeVariable);
  if (text.empty()) return preset;
  std::string name(text.size(), '\0');
  std::ranges::transform(text, name.begin(), upper);
  const auto* const found = std::ranges::find(kTypes, name, &TypeName::name);
  if (found != kTypes.end()) return found->type;
  warn(fmt::format("{}={}: none of ALL, ANON and CONTIG; ALL is used", kTypeVariable, text));
  return preset;
}

unsigned read_order(const char* variable, unsigned preset, const WarningSink& warn) {
  const std::string text = os::environment(variable);
  if (text.empty()) return preset;
  const char* const end = text.data() + text.size();
  unsigned order = 0;
  const auto [stop, error] = std::from_chars(text.data(), end, order);
  if (error == std::errc{} && stop == end && order >= kLeastOrder && order <= kMostOrder) {
    return order;
  }
  warn(fmt::format("{}={}: not a number from {} to {}; {} is used", variable, text, kLeastOrder,
                   kMostOrder, preset));
  return preset;
}

}  // namespace

AllocatorSettings read_allocator_settings(const WarningSink& warn) {
  const AllocatorSettings preset;
  AllocatorSettings read;
  read.type = read_type(preset.type, warn);
  read.max_order = read_order(kMaxVariable, preset.max_order, warn);
  read.min_order = read_order(kMinVariable, preset.min_order, warn);
  if (read.min_order > read.max_order) {
    warn(fmt::format("{}={} is above {}={}; {} and {} are used", kMinVariable, read.min_order,
                     kMaxVariable, read.max_order, preset.min_order, preset.max_order));
    read.min_order = preset.min_order;
    read.max_order = preset.max_order;
  }
  return read;
}

}  // namespace weft::verbs
