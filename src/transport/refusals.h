// SPDX-License-Identifier: BSD-2-Clause
// For which reason is a packet dropped that its target does not want?
#pragma once

#include <optional>

#include "transport/drops.h"
#include "transport/target.h"

namespace weft::transport {

// Nothing for one that it wants.
constexpr std::optional<Drop> drop_for(const Verdict& verdict) {
  switch (verdict.kind) {
    case Verdict::Kind::kYes:
      return std::nullopt;
    case Verdict::Kind::kNotReady:
      return Drop::kNoReceive;
    case Verdict::Kind::kInvalid:
      return Drop::kLength;
    case Verdict::Kind::kAccess:
      return Drop::kAccess;
    case Verdict::Kind::kOperational:
      return Drop::kUnreachable;
  }
  return std::nullopt;
}

}  // namespace weft::transport
