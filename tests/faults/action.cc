// SPDX-License-Identifier: BSD-2-Clause
// What are the kinds of operation called in a report?
#include "action.h"

namespace weft::faults {

const char* name_of(Action action) {
  switch (action) {
    case Action::kSmall:
      return "small send";
    case Action::kLarge:
      return "large send";
    case Action::kTagged:
      return "tagged send";
    case Action::kFlood:
      return "unexpected flood";
    case Action::kWrite:
      return "write";
    case Action::kRead:
      return "read";
    case Action::kWriteData:
      return "write with data";
    case Action::kDeliver:
      return "delivery-complete send";
    case Action::kChurn:
      return "write during registration churn";
    case Action::kAtomic:
      return "atomic addition";
  }
  return "?";
}

const char* name_of(Starter starter) {
  switch (starter) {
    case Starter::kVictim:
      return "victim";
    case Starter::kSurvivor:
      return "survivor";
    case Starter::kBoth:
      return "both";
  }
  return "?";
}

}  // namespace weft::faults
