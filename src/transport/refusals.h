// SPDX-License-Identifier: BSD-2-Clause
// For which reason is a packet dropped that its target does not want?
#pragma once

#include <optional>

#include "transport/drops.h"
#include "transport/target.h"

namespace weft::transport {

// Nothing for one that it wants.
constexpr std::optional<Drop> drop_for(const RequestVerdict& verdict) {
  switch (verdict.kind) {
    case RequestVerdict::Kind::kYes:
      return std::nullopt;
    case RequestVerdict::Kind::kNotReady:
      return Drop::kNoReceive;
    case RequestVerdict::Kind::kInvalid:
      return Drop::kLength;
    case RequestVerdict::Kind::kAccess:
      return Drop::kAccess;
    case RequestVerdict::Kind::kOperational:
      return Drop::kUnreachable;
  }
  return std::nullopt;
}

}  // namespace weft::transport
