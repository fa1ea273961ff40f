// SPDX-License-Identifier: BSD-2-Clause
// What is a requester asked to do, and how does that end? (ibv_post_send(3), ibv_poll_cq(3))
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>

#include "base/slices.h"
#include "base/types.h"
#include "work/local_memory.h"
#include "work/status.h"

namespace weft::work {

inline constexpr std::size_t kMaxWorkSges = 16;
inline constexpr std::uint64_t kMaxMessage = std::uint64_t{1} << 31;

// What is to be done at the peer.
enum class WorkKind : std::uint8_t { kSend, kWrite, kRead, kCompareSwap, kFetchAdd };

// A work request. Its SGEs stay the caller's, and stay as they are, until it ended: an SGE that
// goes meanwhile ends it with kLocalProtection. The list of them is copied.
struct Work {
  WorkKind kind = WorkKind::kSend;
  bool has_immediate = false;  // of a send or a write
  // Of a send, but not of reliable datagrams: `immediate` is a key that the peer shall invalidate.
  bool invalidates = false;
  bool solicited = false;
  bool fence = false;  // begins when all reads and atomic operations before it have ended
  // A completion waits for the end. A peer that is Weft (Settings::selective) is asked for an
  // answer at once for such work only; it acknowledges other work when it finds the time.
  bool prompt = true;
  std::uint32_t immediate = 0;
  std::span<const Segment> sges;     // what is sent, or where the bytes of a read go
  std::uint64_t length = 0;          // of all SGEs; 8 for atomic operations, which have none
  std::uint32_t shared_receive = 0;  // at the peer: number of the queue (annex A14), else unused
  std::uint64_t address = 0;         // at the peer
  std::uint32_t key = 0;
  std::uint64_t compare = 0;
  std::uint64_t swap_or_add = 0;
  std::uint64_t* original = nullptr;  // where the value goes that an atomic operation found
  void* cookie = nullptr;             // given back at the end
};

// An access of any length is one or more of these, none of which has more than kMaxMessage bytes.
// `work` has the length of all, and neither SGEs nor more than one address; its bytes lie in
// `local` from `offset` on. Calls post(const Work&) for one after the other until that is false.
// The last one alone has the immediate value.
template <class Post>
void post_in_parts(Work work, std::span<const Segment> local, std::uint64_t offset,
                   const Post& post) {
  const bool with_immediate = work.has_immediate;
  for (std::uint64_t left = work.length;; left -= work.length) {
    Segment part[kMaxWorkSges];
    work.length = std::min(left, kMaxMessage);
    work.has_immediate = with_immediate && work.length == left;
    work.sges = {part, slice(local, offset, work.length, part)};
    if (!post(work) || work.length == left) return;
    work.address += work.length;
    offset += work.length;
  }
}

// How a work request ended. `detail` of a kRemoteAccess between Weft's own: which rule was broken.
struct Ended {
  void* cookie = nullptr;
  CompletionStatus status = CompletionStatus::kSuccess;
  std::uint8_t detail = 0;
};

// Hears how work ended, in the order in which it was posted. Called from within the functions of a
// requester, of which it may call post() only.
class WorkSink {
 public:
  virtual ~WorkSink() = default;
  virtual void ended(const Ended& work) = 0;
};

}  // namespace weft::work
