// SPDX-License-Identifier: BSD-2-Clause
// How does an initiator carry out a one-sided operation within its host?
//
// It checks the queue pair of the target and the remote key in the region table of the target's
// process, and its own local keys, and copies from memory to memory while all of them are pinned.
#pragma once

#include <cstdint>
#include <memory>

#include "memory/access_guard.h"
#include "near_peer.h"
#include "near_work.h"
#include "os/process_memory.h"
#include "work/status.h"

namespace weft::queue {

// The end of a try.
struct NearOutcome {
  enum class How : std::uint8_t {
    kDone,
    kGoesOn,     // the budget of bytes is used up
    kNotThere,   // no queue pair of the target is connected to this one, or none receives
    kByPackets,  // the target is reached by packets only
    kRefused,    // by the target, for `reason`
    kFailed,     // for a reason of this end
  };
  How how = How::kDone;
  work::CompletionStatus status = work::CompletionStatus::kSuccess;
  memory::AccessError reason = memory::AccessError::kNone;
  Access need = Access::kNone;  // kNone: the request was invalid

  bool done() const { return how == How::kDone; }
};

// The operations of one queue pair. With the transmit lock.
class NearAccess {
  // Memory of both ends is pinned until the end of a try.
  class Pins {
   public:
    explicit Pins(NearAccess& access) : access_(access) {}
    ~Pins() { access_.release(); }
    Pins(const Pins&) = delete;
    Pins& operator=(const Pins&) = delete;

   private:
    NearAccess& access_;
  };

 public:
  // `local` is a guard of this process's table, which outlives this. `extended`: requests name a
  // shared receive queue (annex A14).
  NearAccess(std::shared_ptr<NearPeer> peer, memory::AccessGuard& local, DomainId domain,
             std::uint32_t qpn, std::uint32_t destination, bool extended)
      : peer_(std::move(peer)),
        local_(local),
        domain_(domain),
        qpn_(qpn),
        destination_(destination),
        extended_(extended) {}

  // Carries out the request, or goes on with it, by at most `budget` bytes, which it reduces.
  NearOutcome carry_out(NearWork& request, std::uint64_t& budget);
  // Carries out WRITEs of few bytes by one system call: `works[0]` to the last one that `count`
  // names. False: none of them was carried out, and one by one they may be.
  bool write_together(NearWork* const* works, std::size_t count);
  // Reads buffers of the peer into memory of this process.
  class Pull {
   public:
    // Pins the buffers, if the peer's protection domain allows local reads of them: outcome().
    Pull(NearAccess& access, std::span<const RemoteRange> buffers);
    const NearOutcome& outcome() const { return outcome_; }
    // Copies the bytes from `offset` on that fill `here`. An errno of copy_process_memory(), or 0.
    int copy(std::uint64_t offset, std::span<const LocalRange> here);

   private:
    NearAccess& access_;
    const Pins pins_;
    NearOutcome outcome_;
  };

 private:
  // Bytes of a request that are copied at once.
  struct Piece;

  void release();
  NearOutcome pin_pair(const work::Work& work, Access need);
  NearOutcome pin_here(Piece& piece, bool writes);
  NearOutcome pin_there(const NearWork& request, const Piece& piece, Access need);
  NearOutcome copy(NearWork& request, Access need, std::uint64_t& budget);
  NearOutcome change(NearWork& request);
  int move(std::span<const LocalRange> here, std::span<const LocalRange> there,
           os::CopyDirection direction);
  NearOutcome failure_of(int error, std::span<const LocalRange> here, Access need);

  const std::shared_ptr<NearPeer> peer_;
  memory::AccessGuard& local_;
  const DomainId domain_;
  const std::uint32_t qpn_;
  const std::uint32_t destination_;
  const bool extended_;
  DomainId domain_there_;  // of the memory that the pinned queue pair gives access to
};

}  // namespace weft::queue
