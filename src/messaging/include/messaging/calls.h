// SPDX-License-Identifier: BSD-2-Clause
// What can an endpoint be asked to do?
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "link/flow.h"
#include "messaging/address_vector.h"

namespace weft::messaging {

// How an operation that is started reports its end.
struct Report {
  void* context = nullptr;
  bool wanted = true;   // an entry in the queue even when it succeeds
  bool silent = false;  // never an entry, not even for a failure: failures are returned (inject)
};

// A message to send, and the peer it goes to. Pieces must stay unchanged until the end is reported,
// unless must_copy is set, with which the length may be no more than shm::kMaxEager. The cookie is
// the endpoint's.
struct SendCall : link::SendRequest {
  PeerIndex peer = kNoPeer;
  bool fence = false;
  Report report;
};

// An access to a peer's memory.
struct AccessCall : link::AccessRequest {
  PeerIndex peer = kNoPeer;
  bool fence = false;
  Report report;
};

// An atomic operation on a peer's memory.
struct AtomicCall : link::AtomicRequest {
  PeerIndex peer = kNoPeer;
  bool fence = false;
  Report report;
};

// A receive, or a look at what has come (fi_tagged(3): FI_PEEK, FI_CLAIM, FI_DISCARD).
struct ReceiveCall {
  enum class Mode { kPost, kPeek, kPeekClaim, kPeekDiscard, kTakeClaimed, kDiscardClaimed };
  bool tagged = false;
  Mode mode = Mode::kPost;
  std::uint64_t tag = 0;
  std::uint64_t ignore = 0;
  PeerIndex source = kNoPeer;
  std::span<const LocalRange> pieces;
  // With kPost: the buffer, of one piece, takes messages until less than `least` bytes are left;
  // the completion that gives it back has kMultiReceive (fi_msg(3), FI_MULTI_RECV).
  bool multi = false;
  std::size_t least = 0;
  Report report;
};

}  // namespace weft::messaging
