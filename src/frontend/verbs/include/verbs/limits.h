// SPDX-License-Identifier: BSD-2-Clause
// How many of each object, and how long, does a verbs device allow?
#pragma once

#include <cstdint>

#include "queue/attributes.h"

namespace weft::verbs {

// The answers of ibv_query_device(3) and ibv_query_port(3). The creating calls accept so many, and
// refuse one more.
struct Limits {
  static constexpr int kQps = 65'536;
  static constexpr int kWorkRequests =
      queue::kMaxWorkRequests;                   // of a send, a receive or a shared receive queue
  static constexpr int kSges = queue::kMaxSges;  // of a work request
  static constexpr int kInlineBytes = queue::kMaxInline;
  static constexpr int kCqs = 65'536;
  static constexpr int kCqes = queue::kMaxCompletions;
  static constexpr int kMrs = 1 << 21;
  static constexpr int kPds = 65'536;
  static constexpr int kSrqs = 65'536;
  static constexpr int kAhs = 1 << 20;
  static constexpr int kReadsAndAtomics =
      queue::kMaxReads;  // outstanding, of a queue pair, as either side
  static constexpr std::uint32_t kMessageBytes = std::uint32_t{1} << 31;
  static constexpr int kCompletionVectors = 1;
  static constexpr int kGidsAtLeast = 4;  // scripts of users name indexes up to 3
};

}  // namespace weft::verbs
