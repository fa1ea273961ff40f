// SPDX-License-Identifier: BSD-2-Clause
// How do sender and receiver copy one message together?
#pragma once

#include <sys/types.h>

#include <span>

#include "base/types.h"
#include "link_shm/layout.h"

namespace weft::shm {

// Which end of the message a side copies from.
enum class Side { kReceiver, kSender };

// One side's view of a matched exchange. The pieces are private copies: the peer cannot change them
// under way. `length` is what is copied, not larger than either list of pieces.
struct CopyJob {
  Exchange* exchange = nullptr;
  Side side = Side::kReceiver;
  pid_t peer = 0;
  std::uint64_t length = 0;
  std::span<const LocalRange> mine;    // in this process
  std::span<const LocalRange> theirs;  // in the peer
};

// Copies chunks until none is left to claim. A chunk that cannot be copied is marked in
// Exchange::fault and counts as copied, so that the other side comes to an end.
void copy_chunks(const CopyJob& job);

// The errno that says how the copying of an exchange ended: 0, or the first fault, where an end of
// the peer's process is ECONNRESET and what is no errno is EIO.
int ending(const Exchange& exchange);

// True when every chunk of a message of `length` bytes is copied.
bool all_copied(const Exchange& exchange, std::uint64_t length);

// Takes all chunks that nobody has claimed, without copying; then only the peer's are under way.
void abandon_chunks(Exchange& exchange, std::uint64_t length);

}  // namespace weft::shm
