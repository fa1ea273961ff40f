// SPDX-License-Identifier: BSD-2-Clause
// In which ways do a process in shortage and its partner meet, and what do they say to each other?
#pragma once

#include <cstddef>
#include <cstdint>

#include "node.h"

namespace weft::faults {

struct Mode {
  const char* name;
  fi_ep_type type = FI_EP_RDM;
  bool listens = false;  // of FI_EP_MSG: the process in shortage is asked, instead of asking
  fi_progress progress = FI_PROGRESS_UNSPEC;

  bool connects() const { return type == FI_EP_MSG; }
  bool loses() const { return type == FI_EP_DGRAM; }
};
inline constexpr Mode kModes[] = {
    {"reliable datagrams"},
    {"reliable datagrams with automatic progress", FI_EP_RDM, false, FI_PROGRESS_AUTO},
    {"a connection that is asked for", FI_EP_MSG, false},
    {"a connection that is accepted", FI_EP_MSG, true},
    {"a connection that is accepted, with automatic progress", FI_EP_MSG, true, FI_PROGRESS_AUTO},
    {"datagrams", FI_EP_DGRAM},
};

// What the partner is told over its channel.
struct Notice {
  Address listener{};        // of the process in shortage: connect there
  std::uint64_t number = 0;  // of this request to do so
  bool over = false;         // that was all
};

// In front of each message.
struct Letterhead {
  Address sender;
  std::uint64_t number;
};
inline constexpr std::size_t kSmallLetter = 100;
inline constexpr std::size_t kLargeLetter = 100000;

// A number in the partner's memory, which only its connected peer adds to.
inline constexpr std::uint64_t kCountKey = 9;

}  // namespace weft::faults
