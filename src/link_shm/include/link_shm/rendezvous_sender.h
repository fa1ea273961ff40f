// SPDX-License-Identifier: BSD-2-Clause
// How does a sender see its large and its acknowledged messages to their end?
#pragma once

#include <memory>
#include <vector>

#include "link/flow.h"
#include "link_shm/layout.h"
#include "link_shm/paired_copy.h"
#include "link_shm/peer_slot.h"
#include "link_shm/ring_writer.h"
#include "os/clock.h"

namespace weft::shm {

// The rendezvous of a slot, from the sender's side. The slot outlives it. One thread.
class RendezvousSender {
 public:
  explicit RendezvousSender(PeerSlot& slot)
      : slot_(slot), records_(slot.memory().rendezvous_records()) {}

  // True while messages are under way.
  bool busy() const { return !active_.empty(); }
  // True when a rendezvous is free that has memory.
  bool has_free() const { return !free_.empty(); }
  // True when a rendezvous is free; it gets memory if all others that have some are in use.
  bool obtain();
  // Takes a free rendezvous for a message, which a cell of `kind` is to announce, and returns its
  // number. Its SGEs stay the caller's and unchanged until its end is reported.
  std::uint32_t start(const link::SendRequest& request, CellKind kind);
  // Copies what the receiver has matched, and reports what has ended.
  void progress(RingWriter& ring, link::FlowSink& sink);
  // True when progress() would report an end.
  bool any_done() const;
  // Withdraws a message that is offered and not matched. False when there is none of that cookie.
  bool cancel(void* cookie, RingWriter& ring, link::FlowSink& sink);
  // Ends all messages: those that the receiver is copying are finished first, until `end`.
  void drain(os::Time end);
  // The same, and reports each: what was not delivered failed with ECONNRESET.
  void end_all(os::Time end, link::FlowSink& sink);

 private:
  // The private side of a rendezvous.
  struct Pending {
    void* cookie = nullptr;
    std::uint64_t length = 0;
    std::uint32_t count = 0;
    bool reported = false;
    bool offered = false;             // its bytes are in these SGEs only
    bool reports_withdrawal = false;  // the peer is to be told that it was withdrawn
    LocalRange sges[link::kMaxLinkSges];
  };

  bool progress_one(std::uint32_t number, RingWriter& ring, link::FlowSink& sink);
  void help_copying(std::uint32_t number);
  void report(std::uint32_t number, int error, link::FlowSink& sink);
  void report_withdrawal(std::uint32_t number, RingWriter& ring);
  void part_from(std::uint32_t number, os::Time end);

  PeerSlot& slot_;
  Rendezvous* records_;                // those that are backed
  std::vector<Pending> pending_;       // by number of rendezvous, as far as they have memory
  std::vector<std::uint32_t> active_;  // numbers of those in use
  std::vector<std::uint32_t> free_;
  std::unique_ptr<ChunkCopier> copier_;  // 2 KiB; null before any rendezvous has memory
};

}  // namespace weft::shm
