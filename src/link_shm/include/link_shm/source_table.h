// SPDX-License-Identifier: BSD-2-Clause
// Which processes send to a mailbox, and at whose rings does every poll look?
#pragma once

#include <sys/types.h>

#include <bitset>
#include <memory>
#include <utility>
#include <vector>

#include "base/result.h"
#include "link_shm/geometry.h"
#include "link_shm/layout.h"
#include "link_shm/peer_process.h"
#include "link_shm/ring_reader.h"
#include "link_shm/slot_memory.h"
#include "os/shared_file.h"
#include "os/waker.h"

namespace weft::shm {

// One peer that sends to a mailbox.
struct Source {
  Source(std::uint32_t slot, SlotMemory mapped);
  // Wakes the sender if it sleeps, by way of `waker`.
  void wake(const os::Waker& waker) const;

  const std::uint32_t number;
  SlotMemory memory;
  SlotHeader* const header;
  RingReader ring;
  PeerProcess process{nullptr, 0, 0};  // of id 0: its memory cannot be reached
  unsigned idle_polls = 0;
  bool polled = false;  // in the list of rings that every poll looks at
  std::bitset<kMaxRendezvous / kRendezvousBlock> rendezvous_backed;  // by block
  bool must_fence = true;      // the sender raises no barriers that this process heeds
  bool helps = false;          // it was seen copying its share of a large message
  unsigned helped_at = 0;      // the look since which it is waited for
  bool broken = false;         // it wrote nonsense: not listened to any more
  bool rests = false;          // its next messages wait for the next poll
  std::uint64_t answered = 0;  // answer_word() of the message that was postponed, or 0
};

// The open slots of a mailbox. The file outlives it. One thread.
class SourceTable {
 public:
  explicit SourceTable(os::SharedFilePtr file) : file_(std::move(file)) {}

  // The source of a slot; null when that is not open.
  Source* find(std::uint32_t number) const {
    return number < sources_.size() ? sources_[number].get() : nullptr;
  }
  // All of them, by number of slot; null where a slot is not open.
  const std::vector<std::unique_ptr<Source>>& all() const { return sources_; }
  // Those whose rings every poll looks at.
  const std::vector<Source*>& polled() const { return polled_; }

  // Takes in the sender of a slot, which may have ended; null when the slot has none yet, or an
  // ended one that has sent nothing: the slot is free then. A sender whose geometry cannot be is
  // `broken`. Errors: ENOSPC, EFBIG, those of mmap(2).
  Result<Source*> open(std::uint32_t number);
  // Gives the slot of a source, which goes with it, to the next sender.
  void close(Source& source);
  // The first slot that is not open.
  std::uint32_t first_free() const { return first_free_; }
  // True when the sender holds its slot.
  bool sender_lives(const Source& source) const {
    return file_->holder(kSlotLock + source.number).has_value();
  }

  // Backs a rendezvous before the first look at it: a sender that has not backed what it tells of
  // must not be able to make this process touch what does not exist. False when there is no such
  // rendezvous, or no memory.
  static bool back_rendezvous(Source& source, std::uint32_t rendezvous_id);

  // Has every poll look at a ring from now on, or does not any more.
  void listen(Source& source);
  void stop_listening(Source& source);
  // A poll has found the ring of a source empty.
  void note_idle(Source& source) {
    if (++source.idle_polls > idle_limit_) [[unlikely]]
      demotion_due_ = true;
  }
  // Stops listening to rings that were empty for long, which would make every poll longer; their
  // senders ask for attention from now on. After a poll. One ring is always listened to.
  void demote_idle() {
    if (std::exchange(demotion_due_, false)) [[unlikely]]
      demote();
  }
  // Senders whose rings are polled ask for attention while the owner sleeps.
  void set_asleep(bool asleep);
  bool asleep() const { return asleep_; }

 private:
  bool has_message(std::uint32_t number) const;
  void demote();
  void count_polled();

  os::SharedFilePtr file_;
  std::vector<std::unique_ptr<Source>> sources_;
  std::vector<Source*> polled_;
  std::uint32_t first_free_ = 0;
  unsigned idle_limit_ = 0;  // empty looks at a ring after which it is looked at on demand only
  bool demotion_due_ = false;
  bool asleep_ = false;
};

}  // namespace weft::shm
