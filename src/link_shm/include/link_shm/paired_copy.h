// SPDX-License-Identifier: BSD-2-Clause
// How do sender and receiver copy one message together?
#pragma once

#include <optional>
#include <span>

#include "base/types.h"
#include "link_shm/layout.h"
#include "link_shm/peer_process.h"

namespace weft::shm {

// Which end of the message a side copies from.
enum class Side { kReceiver, kSender };

// Writes this side's list of SGEs, at most link::kMaxLinkSges, into a rendezvous.
void describe(Rendezvous& rendezvous, Side side, std::span<const LocalRange> sges);
// Copies a side's list out of a rendezvous and returns its length, or nothing when that cannot be.
std::optional<std::size_t> read_description(const Rendezvous& rendezvous, Side side,
                                            LocalRange (&sges)[link::kMaxLinkSges]);

// One side's view of a matched rendezvous. The SGEs are private copies: the peer cannot change them
// under way. `length` is what is copied, not larger than either list of SGEs.
struct CopyJob {
  Rendezvous* rendezvous = nullptr;
  PeerProcess* peer = nullptr;
  std::uint64_t length = 0;
  std::span<const LocalRange> mine;    // in this process
  std::span<const LocalRange> theirs;  // in the peer
};

// Copies the chunks that one side claims; those of small messages together in one system call.
// A chunk that cannot be copied is marked in Rendezvous::fault and counts as copied, so that the
// other side comes to an end. So are all chunks of a peer whose process has ended. If it ends while
// it is read from, PeerProcess::reads_confirmed() tells. The jobs' rendezvous, peers and buffers
// must stay until flush().
class ChunkCopier {
 public:
  explicit ChunkCopier(Side side) : side_(side) {}
  // The receiver's share, which claim_share() has claimed; copied now or in flush().
  void add_share(const CopyJob& job);
  // Claims chunks until none is left, and copies them now or in flush().
  void add_rest(const CopyJob& job);
  // Copies what add() has put off.
  void flush();

 private:
  struct Chunk {
    Rendezvous* rendezvous;
    std::size_t mine_end;  // in mine_, behind its SGEs
    std::size_t theirs_end;
  };
  static constexpr std::size_t kChunks = 8;
  static constexpr std::size_t kSges = kChunks * link::kMaxLinkSges;

  void put_off(const CopyJob& job, std::uint64_t chunk);
  int copy(std::size_t first, std::size_t last) const;
  void copy_one_by_one() const;
  void copy_all();
  void fail_all(int error);

  const Side side_;
  PeerProcess* peer_ = nullptr;
  std::uint64_t bytes_ = 0;
  bool exact_ = true;  // every list of the peer is as long as this side's
  std::size_t count_ = 0;
  Chunk chunks_[kChunks];
  LocalRange mine_[kSges];
  LocalRange theirs_[kSges];
};

// Claims the receiver's share, before the sender may claim anything. Each side copying the same
// part of a buffer that is used again and again keeps that part in the cache of its core.
void claim_share(Rendezvous& rendezvous, std::uint64_t length);

// True when both sides together have claimed every chunk of a message of `length` bytes.
bool all_claimed(const Rendezvous& rendezvous, std::uint64_t length);

// True while a chunk that was claimed is not copied yet.
bool being_copied(const Rendezvous& rendezvous);

// The errno that says how the copying of a rendezvous ended: 0, or the first fault, where an end of
// the peer's process is ECONNRESET and what is no errno is EIO.
int ending(const Rendezvous& rendezvous);

// True when every chunk of a message of `length` bytes is copied.
bool all_copied(const Rendezvous& rendezvous, std::uint64_t length);

// Claims all chunks that are unclaimed for the receiver, without copying them: the sender begins no
// further one. It still copies those that it had claimed.
void abandon_chunks(Rendezvous& rendezvous, std::uint64_t length);

}  // namespace weft::shm
