// SPDX-License-Identifier: BSD-2-Clause
// For which reason is a packet dropped that its target does not want?
#pragma once

#include <optional>

#include "transport/drops.h"
#include "work/target.h"

namespace weft::transport {

// Nothing for one that it wants.
constexpr std::optional<Drop> drop_for(const work::RequestVerdict& verdict) {
  switch (verdict.kind) {
    case work::RequestVerdict::Kind::kYes:
      return std::nullopt;
    case work::RequestVerdict::Kind::kNotReady:
      return Drop::kNoReceive;
    case work::RequestVerdict::Kind::kInvalid:
      return Drop::kLength;
    case work::RequestVerdict::Kind::kAccess:
      return Drop::kAccess;
    case work::RequestVerdict::Kind::kOperational:
    case work::RequestVerdict::Kind::kGivenUp:
      return Drop::kUnreachable;
  }
  return std::nullopt;
}

}  // namespace weft::transport
