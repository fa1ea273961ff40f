// SPDX-License-Identifier: BSD-2-Clause
// Which packets were dropped without an answer, and why?
#include "transport/drops.h"

namespace weft::transport {

std::string_view name_of(Drop reason) {
  switch (reason) {
    case Drop::kTransport:
      return "other transport";
    case Drop::kPartition:
      return "other partition";
    case Drop::kSequence:
      return "out of sequence";
    case Drop::kRest:
      return "rest of a broken message";
    case Drop::kLength:
      return "wrong length";
    case Drop::kNoReceive:
      return "no receive";
    case Drop::kAccess:
      return "access refused";
    case Drop::kUnreachable:
      return "memory gone";
  }
  return "";
}

}  // namespace weft::transport
