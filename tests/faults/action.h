// SPDX-License-Identifier: BSD-2-Clause
// Which kinds of operation are interrupted, and which process starts them?
#pragma once

#include <netinet/in.h>

#include <array>
#include <cstddef>
#include <cstdint>

namespace weft::faults {

enum class Action : std::uint8_t {
  kSmall,      // stream of untagged 64-byte messages
  kLarge,      // untagged messages of 64 to 512 KiB: pulled by the receiver
  kTagged,     // tagged messages of mixed sizes
  kFlood,      // tagged messages without a posted receive
  kWrite,      // remote writes of mixed sizes
  kRead,       // remote reads of mixed sizes, verified
  kWriteData,  // remote writes with immediate data, each verified at the target when its data
               // arrives
  kDeliver,    // messages that complete only when the receiver has them
  kChurn,      // remote writes to a region that the target keeps closing and registering again
  kAtomic,     // atomic additions to numbers that all initiators of the target share, across a page
};
// Their number has no factor in common with that of the starters.
inline constexpr std::array kActions{
    Action::kSmall, Action::kLarge,     Action::kTagged,  Action::kFlood, Action::kWrite,
    Action::kRead,  Action::kWriteData, Action::kDeliver, Action::kChurn, Action::kAtomic};

// Which process starts the operations.
enum class Starter : std::uint8_t { kVictim, kSurvivor, kBoth };
inline constexpr std::array kStarters{Starter::kVictim, Starter::kSurvivor, Starter::kBoth};

// Whether operations go on for as long as both sides live: unexpected messages end with the memory
// for them.
inline bool goes_on(Action action) { return action != Action::kFlood; }

const char* name_of(Action action);
const char* name_of(Starter starter);

inline bool victim_starts(Starter starter) { return starter != Starter::kSurvivor; }
inline bool survivor_starts(Starter starter) { return starter != Starter::kVictim; }

// What a victim is told before it is born. A plain structure: it crosses a socket between parent
// and child.
struct Order {
  std::uint64_t id = 0;    // unique in a run; part of every tag and payload
  std::uint64_t seed = 0;  // of this victim's choices
  sockaddr_in survivor{};
  std::uint64_t survivor_base = 0;  // where in the survivor's region this victim's arena begins
  std::uint32_t kill_after_us = 0;
  std::uint16_t port = 0;  // to open its endpoint at; 0: any
  std::uint16_t slot = 0;
  Action action = Action::kSmall;
  Starter starter = Starter::kBoth;
  bool early =
      false;  // dies that long after its birth, not after the greeting: while connecting, or before
  bool stopped = false;    // stands still in the middle (SIGSTOP), and is killed by the survivor
  bool connected = false;  // meets the survivor by a connection (FI_EP_MSG)
  bool asks = false;       // for it, rather than wait to be asked
  bool blocking = false;   // waits in fi_cq_sread instead of polling
};

// Remote keys, the same in every process.
inline constexpr std::uint64_t kArenaKey = 7;
inline std::uint64_t churn_key(std::size_t slot) { return 100 + slot; }

// Tags: the lowest bits tell what a message is for, the rest whose it is.
enum class Use : std::uint64_t { kStream = 1, kFlood = 2, kHello = 3, kReply = 4, kLate = 5 };
inline std::uint64_t tag_of(std::uint64_t id, Use use) {
  return id << 4 | static_cast<std::uint64_t>(use);
}

}  // namespace weft::faults
