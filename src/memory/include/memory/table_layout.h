// SPDX-License-Identifier: BSD-2-Clause
// How does the region table of a process look in shared memory?
//
// One file per process. Its owner alone writes slots and indexes; every user (an initiator that
// accesses memory of the owner) writes its own user record. All of it is untrusted to the readers:
// numbers are checked before they are used, and there are no pointers.
//
//   page 0        TableHeader
//   kUsersAt      kMaxUsers user records: which slots is this user working in just now (hazards)
//   kIndexAt      two banks for an open-addressing hash index of up to 2^22 entries. One is
//                 searched; the next index, larger or without tombstones, is built in the other.
//   kSlotsAt      kMaxRegions region slots
//
// The file is sparse, and slots and indexes get memory as regions are registered: 64 bytes for a
// slot, and at most 16 for its entries in the index. A region of several segments takes a slot for
// each of them.
#pragma once

#include <atomic>
#include <cstdint>

#include "base/authorization.h"
#include "base/types.h"

namespace weft::memory {

inline constexpr std::uint64_t kTableMagic = 0x5745465454424c31;  // "WEFTTBL1"
inline constexpr std::uint32_t kTableVersion = 8;
inline constexpr std::uint32_t kMaxUsers = 8192;
inline constexpr std::uint32_t kMaxRegions = 1u << 21;
inline constexpr std::uint32_t kFirstIndexBits = 10;
inline constexpr std::uint32_t kMaxIndexBits = 22;
inline constexpr std::uint32_t kHazards = 8;      // regions that one operation can touch
inline constexpr std::uint32_t kMaxSegments = 8;  // of one region
inline constexpr std::uint32_t kMaxParts = 1024;  // of one region, open or not refreshed

// Byte offset of the file's record lock: 0 is the owner, kUserLock + i is user i.
inline constexpr std::uint64_t kUserLock = 1;

struct TableHeader {
  std::uint64_t magic;
  std::uint32_t version;
  std::uint32_t owner_raises_barriers;    // users need no fence of their own if they heed barriers
  std::atomic<std::uint32_t> users_end;   // no user record from here on was ever used
  std::atomic<std::uint32_t> index_word;  // which index is searched: see IndexWord
  std::uint32_t private_shift;            // of memory that no other process has (page_numbers.h)
};

struct alignas(2 * kCacheLine) UserRecord {
  std::atomic<std::uint32_t> heeds_barriers;  // of the owner; set before the first hazard
  alignas(kCacheLine) std::atomic<std::uint64_t> hazards[kHazards];  // slot number + 1, or 0
};

// A sequence lock: `sequence` is odd while the slot is changed or holds no region. The slots of
// further segments have only `base`, `segment`, `next` and, as their `access`, whether they are
// refreshed; they stay odd: they change while no user has the region pinned and while it is
// disabled or new, so the sequence of the region's slot speaks for them. Where a part of a segment
// is not refreshed, it has a slot like a segment.
struct alignas(kCacheLine) RegionSlot {
  std::atomic<std::uint32_t> sequence;
  // Rights, states, which accesses users tell the owner of, and the authorization.
  std::atomic<std::uint32_t> access;
  std::atomic<std::uint64_t> key;
  std::atomic<std::uint32_t> domain;
  // The shift of the region's pages (page_numbers.h), or 0 before the first atomic operation. Users
  // write it, too.
  std::atomic<std::uint32_t> shift;
  std::atomic<std::uint64_t> base;     // virtual address of the first segment in the owner
  std::atomic<std::uint64_t> length;   // bytes of all segments
  std::atomic<std::uint64_t> start;    // the remote address that means `base`
  std::atomic<std::uint64_t> segment;  // bytes of the first segment
  std::atomic<std::uint32_t> next;     // slot number + 1 of the next segment, or 0
  // The only endpoint or queue pair that accesses may go through (Through::endpoint); 0: any.
  std::atomic<std::uint32_t> binding;
};

// States, as bits of RegionSlot::access: of a region that allows no access, as it is not enabled
// (fi_mr_enable(3)) or is being refreshed, and of the bytes of one slot, which are closed until
// they are refreshed (fi_mr_refresh(3)).
inline constexpr std::uint32_t kRegionDisabled = 1u << 14;
// Memory of a device: the owner alone can copy it.
inline constexpr std::uint32_t kRegionOfDevice = 1u << 13;
inline constexpr std::uint32_t kPartNotRefreshed = 1u << 15;

// Also there: the number that the owner has given the region's authorization key, or 0. It means
// nothing to others, but endpoints of the owner have the same (Through::authorization).
inline constexpr unsigned kAuthorizationShift = 23;
inline constexpr std::uint32_t kAuthorizationBits = kMaxAuthorizations << kAuthorizationShift;
static_assert(kAuthorizationBits >> kAuthorizationShift == kMaxAuthorizations);

// The bits of RegionSlot::access by which the owner asks users to tell it of accesses that need the
// rights `access`.
constexpr std::uint32_t report_bits(Access access) {
  return static_cast<std::uint32_t>(access) << 16;
}
static_assert((report_bits(Access::kRemoteAtomic) & kAuthorizationBits) == 0);

static_assert(sizeof(UserRecord) == 128 && sizeof(RegionSlot) == 64);
static_assert(std::atomic<std::uint64_t>::is_always_lock_free);

inline constexpr std::uint64_t kUsersAt = 4096;
inline constexpr std::uint64_t kIndexAt = kUsersAt + kMaxUsers * sizeof(UserRecord);
static_assert(kIndexAt % 4096 == 0);

// Names an index: its generation, whose parity is its bank, and the logarithm of its entries.
struct IndexWord {
  std::uint32_t generation = 0;
  std::uint32_t bits = kFirstIndexBits;

  constexpr std::uint32_t pack() const { return generation << 8 | bits; }
  static constexpr IndexWord unpack(std::uint32_t word) { return {word >> 8, word & 0xff}; }
  // The index that follows this one, in the other bank.
  constexpr IndexWord next(std::uint32_t next_bits) const {
    return {(generation + 1) & 0xffffff, next_bits};
  }
  constexpr std::uint64_t entries() const { return std::uint64_t{1} << bits; }
  // Byte offset of the first entry.
  constexpr std::uint64_t at() const {
    return kIndexAt + (generation & 1) * (std::uint64_t{4} << kMaxIndexBits);
  }
  // False for what no owner writes.
  constexpr bool valid() const { return bits >= kFirstIndexBits && bits <= kMaxIndexBits; }
};

inline constexpr std::uint64_t kSlotsAt = kIndexAt + 2 * (std::uint64_t{4} << kMaxIndexBits);
inline constexpr std::uint64_t kTableSize = kSlotsAt + kMaxRegions * sizeof(RegionSlot);
static_assert(kSlotsAt % 4096 == 0);

// Index entries: 0 ends a search, kTombstone does not, anything else is slot number + 1.
inline constexpr std::uint32_t kTombstone = 0xffffffff;

// Where the search for a key begins, before it is cut to the size of the index.
constexpr std::uint64_t hash_key(DomainId domain, RegionKey key) {
  std::uint64_t mixed = key.v ^ (std::uint64_t{domain.v} << 32);
  mixed = (mixed ^ (mixed >> 32)) * 0x9e3779b97f4a7c15;
  return mixed ^ (mixed >> 32);
}

}  // namespace weft::memory
