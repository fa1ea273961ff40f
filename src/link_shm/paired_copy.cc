// SPDX-License-Identifier: BSD-2-Clause
// How do sender and receiver copy one message together?
#include "link_shm/paired_copy.h"

#include <algorithm>
#include <optional>

#include "base/slices.h"
#include "os/process_memory.h"

namespace weft::shm {
namespace {

// One chunk for each side up to 512 KiB: a system call costs as much as copying 15 KiB. Above that
// chunks small enough that both sides finish at about the same time.
std::uint64_t chunk_bytes(std::uint64_t length) {
  return std::clamp<std::uint64_t>(align_up(length / 2, 4096), 32 * 1024, 256 * 1024);
}

std::uint64_t chunk_count(std::uint64_t length) {
  const std::uint64_t size = chunk_bytes(length);
  return (length + size - 1) / size;
}

// Claims one chunk at this side's end; nothing when front and back have met.
std::optional<std::uint64_t> claim(Exchange& exchange, Side side, std::uint64_t count) {
  std::uint64_t claims = exchange.claims.load(std::memory_order_relaxed);
  for (;;) {
    const std::uint64_t front = claims & 0xffffffff;
    const std::uint64_t back = claims >> 32;
    if (front + back >= count) return std::nullopt;
    const std::uint64_t step = side == Side::kReceiver ? 1 : std::uint64_t{1} << 32;
    if (exchange.claims.compare_exchange_weak(claims, claims + step, std::memory_order_acq_rel)) {
      return side == Side::kReceiver ? front : count - 1 - back;
    }
  }
}

void note_fault(Exchange& exchange, int error) {
  std::int32_t none = 0;
  exchange.fault.compare_exchange_strong(none, error, std::memory_order_relaxed);
}

int copy_one(const CopyJob& job, std::uint64_t chunk) {
  const std::uint64_t size = chunk_bytes(job.length);
  const std::uint64_t offset = chunk * size;
  const std::uint64_t length = std::min(size, job.length - offset);
  LocalRange mine[link::kMaxPieces];
  LocalRange theirs[link::kMaxPieces];
  const std::size_t my_count = slice(job.mine, offset, length, mine);
  const std::size_t their_count = slice(job.theirs, offset, length, theirs);
  const auto direction =
      job.side == Side::kReceiver ? os::CopyDirection::kFromProcess : os::CopyDirection::kToProcess;
  return os::copy_process_memory(job.peer, direction, {mine, my_count}, {theirs, their_count});
}

}  // namespace

void copy_chunks(const CopyJob& job) {
  const std::uint64_t count = chunk_count(job.length);
  // No more turns than chunks: a peer that resets the claims must not keep us here.
  for (std::uint64_t turn = 0; turn < count; ++turn) {
    const auto chunk = claim(*job.exchange, job.side, count);
    if (!chunk) break;
    if (job.exchange->fault.load(std::memory_order_relaxed) == 0) {
      if (const int error = copy_one(job, *chunk)) note_fault(*job.exchange, error);
    }
    job.exchange->copied.fetch_add(1, std::memory_order_acq_rel);
  }
}

int ending(const Exchange& exchange) {
  constexpr int kLargestErrno = 4095;
  const int fault = exchange.fault.load(std::memory_order_relaxed);
  if (fault < 0 || fault > kLargestErrno) return EIO;
  // A process that is ending first loses its memory (EPERM) and then its number (ESRCH).
  return fault == ESRCH || fault == EPERM || fault == ECANCELED ? ECONNRESET : fault;
}

bool all_copied(const Exchange& exchange, std::uint64_t length) {
  return exchange.copied.load(std::memory_order_acquire) >= chunk_count(length);
}

void abandon_chunks(Exchange& exchange, std::uint64_t length) {
  note_fault(exchange, ECANCELED);
  const std::uint64_t count = chunk_count(length);
  for (std::uint64_t turn = 0; turn < count && claim(exchange, Side::kReceiver, count); ++turn) {
    exchange.copied.fetch_add(1, std::memory_order_acq_rel);
  }
}

}  // namespace weft::shm
