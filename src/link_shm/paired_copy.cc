// SPDX-License-Identifier: BSD-2-Clause
// How do sender and receiver copy one message together?
#include "link_shm/paired_copy.h"

#include <algorithm>

#include "base/slices.h"
#include "link/peer_error.h"
#include "os/process_memory.h"

namespace weft::shm {
namespace {

// One chunk for each side up to 512 KiB: a system call costs as much as copying 10 KiB. Above that
// chunks small enough that both sides finish at about the same time.
std::uint64_t chunk_bytes(std::uint64_t length) {
  return std::clamp<std::uint64_t>(align_up(length / 2, 4096), 4096, 256 * 1024);
}

// Chunks of several messages go together up to this: a system call more matters little then.
constexpr std::uint64_t kBytesPerCall = 128 * 1024;

std::uint64_t chunk_count(std::uint64_t length) {
  const std::uint64_t size = chunk_bytes(length);
  return (length + size - 1) / size;
}

// What the receiver copies of so many chunks when both sides are at it.
std::uint64_t fair_share(std::uint64_t chunks) { return (chunks + 1) / 2; }

// Claims one chunk at this side's end; nothing when front and back have met.
std::optional<std::uint64_t> claim(Rendezvous& rendezvous, Side side, std::uint64_t count) {
  std::uint64_t claims = rendezvous.claims.load(std::memory_order_relaxed);
  for (;;) {
    const std::uint64_t front = claims & 0xffffffff;
    const std::uint64_t back = claims >> 32;
    if (front + back >= count) return std::nullopt;
    const std::uint64_t step = side == Side::kReceiver ? 1 : std::uint64_t{1} << 32;
    if (rendezvous.claims.compare_exchange_weak(claims, claims + step, std::memory_order_acq_rel)) {
      return side == Side::kReceiver ? front : count - 1 - back;
    }
  }
}

std::uint64_t claimed(const Rendezvous& rendezvous) {
  const std::uint64_t claims = rendezvous.claims.load(std::memory_order_relaxed);
  return (claims & 0xffffffff) + (claims >> 32);
}

// Copying would be in vain, and after kAbandoned read memory that has another use again.
bool failed(const Rendezvous& rendezvous) {
  return rendezvous.fault.load(std::memory_order_relaxed) != 0 ||
         rendezvous.state.load(std::memory_order_relaxed) == RendezvousState::kAbandoned;
}

void note_fault(Rendezvous& rendezvous, int error) {
  std::int32_t none = 0;
  rendezvous.fault.compare_exchange_strong(none, error, std::memory_order_relaxed);
}

}  // namespace

void describe(Rendezvous& rendezvous, Side side, std::span<const LocalRange> sges) {
  const bool sender = side == Side::kSender;
  (sender ? rendezvous.source_count : rendezvous.target_count) =
      static_cast<std::uint16_t>(sges.size());
  for (std::size_t i = 0; i < sges.size(); ++i) {
    (sender ? rendezvous.sges[i].source : rendezvous.sges[i].target) = sges[i];
  }
}

std::optional<std::size_t> read_description(const Rendezvous& rendezvous, Side side,
                                            LocalRange (&sges)[link::kMaxLinkSges]) {
  const bool sender = side == Side::kSender;
  const std::size_t count = read_once(sender ? rendezvous.source_count : rendezvous.target_count);
  if (count > link::kMaxLinkSges) return std::nullopt;
  for (std::size_t i = 0; i < count; ++i) {
    const SgePair& pair = rendezvous.sges[i];
    const LocalRange& range = sender ? pair.source : pair.target;
    sges[i] = {read_once(range.base), read_once(range.length)};
  }
  return count;
}

void claim_share(Rendezvous& rendezvous, std::uint64_t length) {
  rendezvous.claims.fetch_add(fair_share(chunk_count(length)), std::memory_order_relaxed);
}

bool all_claimed(const Rendezvous& rendezvous, std::uint64_t length) {
  return claimed(rendezvous) >= chunk_count(length);
}

bool being_copied(const Rendezvous& rendezvous) {
  return claimed(rendezvous) > rendezvous.copied.load(std::memory_order_relaxed);
}

void ChunkCopier::add_share(const CopyJob& job) {
  const std::uint64_t share = fair_share(chunk_count(job.length));
  for (std::uint64_t chunk = 0; chunk < share; ++chunk) put_off(job, chunk);
}

void ChunkCopier::add_rest(const CopyJob& job) {
  const std::uint64_t count = chunk_count(job.length);
  // No more turns than chunks: a peer that resets the claims must not keep us here.
  for (std::uint64_t turn = 0; turn < count; ++turn) {
    const auto chunk = claim(*job.rendezvous, side_, count);
    if (!chunk) break;
    put_off(job, *chunk);
  }
}

void ChunkCopier::put_off(const CopyJob& job, std::uint64_t chunk) {
  if (failed(*job.rendezvous)) {
    job.rendezvous->copied.fetch_add(1, std::memory_order_acq_rel);
    return;
  }
  if (job.peer != peer_) flush();
  peer_ = job.peer;
  const std::uint64_t size = chunk_bytes(job.length);
  const std::uint64_t offset = chunk * size;
  const std::uint64_t length = std::min(size, job.length - offset);
  const std::size_t mine_at = count_ == 0 ? 0 : chunks_[count_ - 1].mine_end;
  const std::size_t theirs_at = count_ == 0 ? 0 : chunks_[count_ - 1].theirs_end;
  const std::size_t mine_count = slice(job.mine, offset, length, mine_ + mine_at);
  const std::size_t theirs_count = slice(job.theirs, offset, length, theirs_ + theirs_at);
  chunks_[count_++] = {job.rendezvous, mine_at + mine_count, theirs_at + theirs_count};
  exact_ = exact_ && total_length({theirs_ + theirs_at, theirs_count}) == length;
  bytes_ += length;
  if (bytes_ >= kBytesPerCall || count_ == kChunks) flush();
}

int ChunkCopier::copy(std::size_t first, std::size_t last) const {
  const std::size_t mine_at = first == 0 ? 0 : chunks_[first - 1].mine_end;
  const std::size_t theirs_at = first == 0 ? 0 : chunks_[first - 1].theirs_end;
  const auto direction =
      side_ == Side::kReceiver ? os::CopyDirection::kFromProcess : os::CopyDirection::kToProcess;
  return os::copy_process_memory(peer_->pid(), direction,
                                 {mine_ + mine_at, chunks_[last - 1].mine_end - mine_at},
                                 {theirs_ + theirs_at, chunks_[last - 1].theirs_end - theirs_at});
}

// Finds out which of them cannot be copied.
void ChunkCopier::copy_one_by_one() const {
  for (std::size_t i = 0; i < count_; ++i) {
    if (const int error = copy(i, i + 1)) note_fault(*chunks_[i].rendezvous, error);
  }
}

void ChunkCopier::fail_all(int error) {
  for (std::size_t i = 0; i < count_; ++i) note_fault(*chunks_[i].rendezvous, error);
}

// A process that is stopped between the check and a write, for as long as the peer's id takes to be
// given out again, still writes: no system call writes to a process descriptor.
void ChunkCopier::copy_all() {
  if (!peer_->confirmed()) return fail_all(ESRCH);
  // A list of the peer that is too short would take bytes from the next chunk's.
  if (!exact_ || copy(0, count_) != 0) copy_one_by_one();
  if (side_ == Side::kReceiver) peer_->was_read();
}

void ChunkCopier::flush() {
  if (count_ == 0) return;
  copy_all();
  for (std::size_t i = 0; i < count_; ++i) {
    chunks_[i].rendezvous->copied.fetch_add(1, std::memory_order_acq_rel);
  }
  count_ = 0;
  bytes_ = 0;
  exact_ = true;
}

int ending(const Rendezvous& rendezvous) {
  const int fault = rendezvous.fault.load(std::memory_order_relaxed);
  // A process that is ending first loses its memory (EPERM) and then its number (ESRCH).
  if (fault == ESRCH || fault == EPERM || fault == ECANCELED) return ECONNRESET;
  return link::known_error(static_cast<std::uint64_t>(fault), EIO);
}

bool all_copied(const Rendezvous& rendezvous, std::uint64_t length) {
  return rendezvous.copied.load(std::memory_order_acquire) >= chunk_count(length);
}

void abandon_chunks(Rendezvous& rendezvous, std::uint64_t length) {
  note_fault(rendezvous, ECANCELED);
  const std::uint64_t count = chunk_count(length);
  for (std::uint64_t turn = 0; turn < count && claim(rendezvous, Side::kReceiver, count); ++turn) {
    rendezvous.copied.fetch_add(1, std::memory_order_acq_rel);
  }
}

}  // namespace weft::shm
