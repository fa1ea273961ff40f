// SPDX-License-Identifier: BSD-2-Clause
// What can an endpoint be asked to do?
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "device/counter.h"
#include "link/flow.h"
#include "messaging/address_vector.h"
#include "messaging/staging.h"

namespace weft::messaging {

// How an operation that is started reports its end. One is made for every operation, so it is no
// longer than two words.
class Report {
 public:
  // With an entry in the queue that has this context; when it succeeds, only if that is `wanted`.
  // `counter` counts the end instead of the endpoint's counters, if it is not null, and is in use
  // until then; a failure has an entry then only if a success has one (fi_trigger(3)).
  Report(void* its_context = nullptr, bool wanted = true, device::Counter* counter = nullptr)
      : context(its_context),
        how_(reinterpret_cast<std::uintptr_t>(counter) | (wanted ? kWanted : 0)) {}
  // Never with an entry, not even for a failure: failures are returned (inject).
  static Report silence() {
    Report report(nullptr, false);
    report.how_ = kSilent;
    return report;
  }

  void* context;
  bool wanted() const { return (how_ & kWanted) != 0; }
  bool silent() const { return (how_ & kSilent) != 0; }
  device::Counter* counter() const {
    return reinterpret_cast<device::Counter*>(how_ & ~(kWanted | kSilent));
  }
  // Whether a failure has an entry.
  bool reports_failure() const { return wanted() || counter() == nullptr; }

 private:
  static constexpr std::uintptr_t kWanted = 1;
  static constexpr std::uintptr_t kSilent = 2;
  static_assert(alignof(device::Counter) >= 4);

  std::uintptr_t how_;  // the counter's address, whose lowest bits are free for the other two
};

// A message to send, and the peer it goes to. SGEs must stay unchanged until the end is reported,
// unless must_copy is set, with which the length may be no more than shm::kMaxEager. The cookie is
// the endpoint's.
struct SendCall : link::SendRequest {
  PeerIndex peer = kNoPeer;
  bool fence = false;
  Report report;
  Staging* staging = nullptr;  // null: the SGEs are the program's buffers
};

// An access to a peer's memory.
struct AccessCall : link::AccessRequest {
  PeerIndex peer = kNoPeer;
  bool fence = false;
  Report report;
  Staging* staging = nullptr;
};

// An atomic operation on a peer's memory.
struct AtomicCall : link::AtomicRequest {
  PeerIndex peer = kNoPeer;
  bool fence = false;
  Report report;
  Staging* staging = nullptr;
};

// A receive, or a look at what has come (fi_tagged(3): FI_PEEK, FI_CLAIM, FI_DISCARD).
struct ReceiveCall {
  enum class Mode { kPost, kPeek, kPeekClaim, kPeekDiscard, kTakeClaimed, kDiscardClaimed };
  bool tagged = false;
  bool multi = false;
  Mode mode = Mode::kPost;
  std::uint64_t tag = 0;
  std::uint64_t ignore = 0;
  PeerIndex source = kNoPeer;
  std::span<const LocalRange> sges;
  // With kPost and `multi`: the buffer, of one SGE, takes messages until less than so many bytes
  // are left; the completion that gives it back has kMultiReceive (fi_msg(3), FI_MULTI_RECV).
  std::size_t least = 0;
  Report report;
  Staging* staging = nullptr;
};

}  // namespace weft::messaging
