// SPDX-License-Identifier: BSD-2-Clause
// Which sentence explains a refused access with its numbers?
#include "memory/explanation.h"

#include <cinttypes>
#include <cstdio>

#include "memory/access_guard.h"

namespace weft::memory {
namespace {

// How far the access misses a region of known bounds, or else the rule alone.
std::string rule_of(const RefusedAccess& refused) {
  const RemoteRange& range = refused.range;
  char text[64];
  if (refused.region_known && refused.reason == static_cast<int>(AccessError::kPastEnd)) {
    const std::uint64_t end = refused.region_start + refused.region_length;
    std::snprintf(text, sizeof text, " ends %" PRIu64 " bytes past the region",
                  range.address + range.length - end);
    return text;
  }
  if (refused.region_known && refused.reason == static_cast<int>(AccessError::kBeforeStart)) {
    std::snprintf(text, sizeof text, " begins %" PRIu64 " bytes before the region",
                  refused.region_start - range.address);
    return text;
  }
  return std::string(": ") + describe(refused);
}

}  // namespace

std::string explain(const RefusedAccess& refused, const char* key_name, const char* operation) {
  if (refused.ranges == 0) return operation + rule_of(refused);
  const RemoteRange& range = refused.range;
  char text[160];
  std::snprintf(text, sizeof text, "%s 0x%" PRIx64 ": %s of %" PRIu64 " bytes at 0x%" PRIx64,
                key_name, range.key.v, operation, range.length, range.address);
  std::string sentence = text;
  if (refused.ranges > 1) {
    std::snprintf(text, sizeof text, " (first of %" PRIu32 " ranges)", refused.ranges);
    sentence += text;
  }
  sentence += rule_of(refused);
  if (refused.region_known) {
    std::snprintf(text, sizeof text, " (region: %" PRIu64 " bytes from 0x%" PRIx64 ")",
                  refused.region_length, refused.region_start);
    sentence += text;
  }
  return sentence;
}

}  // namespace weft::memory
