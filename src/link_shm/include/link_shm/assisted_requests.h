// SPDX-License-Identifier: BSD-2-Clause
// How does an initiator have small operations carried out by their owner, when that polls anyway?
#pragma once

#include <optional>
#include <span>

#include "link/flow.h"
#include "link_shm/peer_slot.h"
#include "link_shm/ring_writer.h"

namespace weft::shm {

// Asks by a cell and waits for the answer in the slot's AssistedAccess: one at a time. Slot and
// ring outlive it. One thread.
class AssistedRequests {
 public:
  enum class Answer : std::uint8_t {
    kDone,
    kNotDone,  // and the owner will not do it any more, or has ended
    kUnknown,  // the owner has stopped in the middle; it may still do it
    kFault,    // a local buffer is not mapped; an atomic operation may have been done
  };

  AssistedRequests(PeerSlot& slot, RingWriter& ring) : slot_(slot), ring_(ring) {}

  // True when an owner that polls can be asked for an operation on these ranges, at most `most`
  // bytes, and the ring has room for it and for `more_cells`.
  bool fits(std::span<const RemoteRange> ranges, std::size_t most, unsigned more_cells);
  // Asks for an operation that fits, and waits for its end: some microseconds, but up to 2 s if the
  // owner has begun and was stopped.
  Answer ask(const link::AccessRequest& request);
  Answer ask(const link::AtomicRequest& request);
  // True while the outcome of an earlier operation is unknown. When the owner goes on, it carries
  // that operation out: a newer access by this process would be overwritten then, so there must be
  // none.
  bool unanswered();

 private:
  bool publish(const link::AccessRequest& request);
  bool publish(const link::AtomicRequest& request);
  std::optional<Answer> answer_to(std::uint64_t position) const;
  Answer await(std::uint64_t position);
  bool take_back(std::uint64_t position);
  Answer finish(bool reads, std::span<const LocalRange> result, std::size_t length);

  PeerSlot& slot_;
  RingWriter& ring_;
  std::optional<std::uint64_t> unanswered_;  // position of an operation of unknown outcome
};

}  // namespace weft::shm
