// SPDX-License-Identifier: BSD-2-Clause
// How does the mailbox of an endpoint look in shared memory?
//
// One file per endpoint. Its owner receives; each sender claims one slot of it and is the only
// writer of that slot's ring. Whatever the other side writes is untrusted: it is checked before
// use.
//
//   page 0    MailboxHeader
//   kMadsAt   MadCell, kMads times
//   slot i    at slot_at(i): as its Geometry says (geometry.h)
//
// A message is one cell. Its first word carries the lap of the ring, so a cell is published by one
// store and a receiver that polls it takes one cache line, two for more than 40 bytes. A payload up
// to kInlineBytes lies in the cell; a larger one up to the eager limit lies in the bulk ring beside
// it; an even larger one stays in the sender's memory (a Rendezvous) until the receiver has a
// buffer, then both sides copy it.
//
// Management datagrams (MAD) need no slot: each is written into a free MadCell, whose sender holds
// that cell's lock while it writes.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "base/authorization.h"
#include "base/types.h"
#include "link/flow.h"
#include "link/service.h"
#include "link_shm/geometry.h"
#include "memory/table_layout.h"
#include "os/waker.h"

namespace weft::shm {

inline constexpr std::uint64_t kMailboxMagic = 0x574546544d425831;  // "WEFTMBX1"
inline constexpr std::uint32_t kMailboxVersion = 15;
static_assert(memory::kTableVersion == 8, "senders use the owner's table: number both anew");
inline constexpr std::uint32_t kSlots = 4096;  // peers that can send to one endpoint at a time
inline constexpr std::uint32_t kInlineBytes = 104;

inline constexpr std::uint32_t kMads = 64;         // management datagrams, read or not
inline constexpr std::uint32_t kLongestMad = 512;  // bytes

// Byte offset of the file's record locks: 0 is the owner, kSlotLock + i is the sender of slot i,
// kMadLock + i the process that writes MadCell i.
inline constexpr std::uint64_t kSlotLock = 1;
inline constexpr std::uint64_t kMadLock = kSlotLock + kSlots;

// A word at a known address by which a peer makes sure that it reaches the right process.
struct Probe {
  std::uint64_t address;
  std::uint64_t value;
};

struct MailboxHeader {
  std::uint64_t magic;
  std::uint32_t version;
  std::uint32_t domain;
  link::Service service;  // a sender of another service does not find this mailbox
  std::uint32_t owner_raises_barriers;
  std::atomic<std::uint32_t> counts_access;  // kCountsReads | kCountsWrites
  ServedAccess served;                       // initiators refuse all other accesses
  Probe probe;
  os::WakerName waker;
  char table[40];  // file name of the owner's region table
  // By the owner: a sender that looks for a free slot begins with this one, modulo kSlots.
  std::atomic<std::uint32_t> first_free;
  std::uint32_t takes_mads;           // 0: the file has no MadCells, and nothing reads them
  std::atomic<std::uint32_t> closed;  // by the owner: it is gone in good order
  std::uint32_t endpoint;             // its number, which regions may be bound to; 0: none are
  // While the owner sleeps, the number of that sleep; else 0. A sender that finds it set rings the
  // bell and then clears it, if it is still the same.
  alignas(kCacheLine) std::atomic<std::uint32_t> asleep;
  // Slots that need a look: bit w of `summary` says that rung[w] has bits.
  alignas(kCacheLine) std::atomic<std::uint64_t> summary;
  std::atomic<std::uint64_t> mad_order;  // that the next datagram has
  std::atomic<std::uint64_t> mads;       // MadCells that need a look; then `summary` has bit 0
  alignas(kCacheLine) std::atomic<std::uint64_t> woken[kSlots / 64];
  // By the owner: the number of the endpoint's authorization key, which regions must have
  // (memory::Through), and its hash, with the salt; zeros without a key.
  std::uint32_t authorization;
  std::byte authorization_salt[16];
  AuthorizationHash authorization_hash;
};

// Says that a slot needs a look.
inline void mark_woken(MailboxHeader& header, std::uint32_t slot) {
  header.woken[slot / 64].fetch_or(std::uint64_t{1} << (slot % 64));
  header.summary.fetch_or(std::uint64_t{1} << (slot / 64));
}

// The same of MadCells.
inline void mark_mads(MailboxHeader& header, std::uint64_t cells) {
  header.mads.fetch_or(cells);
  header.summary.fetch_or(1);
}

inline constexpr std::uint32_t kCountsReads = 1;
inline constexpr std::uint32_t kCountsWrites = 2;

// A management datagram.
struct alignas(kCacheLine) MadCell {
  std::atomic<std::uint64_t> turn;  // even: free (set by the owner); odd: written (by the sender)
  std::uint64_t order;              // datagrams are read in this order
  std::uint32_t length;
  std::uint32_t address_length;
  unsigned char address[32];  // sockaddr of the sender
  std::byte bytes[kLongestMad];
};

enum class SlotState : std::uint32_t {
  kFree = 0,    // set by the owner
  kOpen = 1,    // set by the sender
  kClosed = 2,  // set by the sender: nothing more will come
};

// What the owner asks of a sender after each message.
enum class Attention : std::uint32_t {
  kPolled = 0,  // nothing: the owner looks at this ring all the time
  kRing = 1,    // mark the slot as rung, and wake the owner if it sleeps
  kGone = 2,    // nothing: the owner has closed the mailbox
};

enum class AssistedState : std::uint64_t {
  kNone = 0,
  kDone = 2,
  kRefused = 3,  // nothing was done
};

inline constexpr std::uint32_t kAssistedBytes = 2048 - 8;
inline constexpr std::uint32_t kAssistedBytesInCell = 32;

// A small access to the owner's memory that the sender asks it to carry out, as long as the owner
// polls anyway: one at a time per slot. What is asked for stands in the cell that asks.
struct alignas(kCacheLine) AssistedAccess {
  std::atomic<std::uint64_t> word;  // assisted_word() of the cell that asked; written by the owner
  std::byte
      bytes[kAssistedBytes];  // what is read, or what is written if that is too long for a cell
};

// What has become of the assisted access that the cell at `position` asks for.
constexpr std::uint64_t assisted_word(std::uint64_t position, AssistedState state) {
  return position << 2 | static_cast<std::uint64_t>(state);
}

// Says of the cell at `position` and of all behind it that they were not executed, and why.
constexpr std::uint64_t answer_word(std::uint64_t position, std::uint16_t why) {
  return (position + 1) << 16 | why;
}
// The sender has given that cell up: the owner takes nothing more from the slot.
inline constexpr std::uint64_t kCellWithdrawn = ~std::uint64_t{0};

struct SlotHeader {
  // Written by the sender.
  std::atomic<SlotState> state;
  std::uint32_t address_length;
  unsigned char address[32];  // sockaddr of the sender
  os::WakerName waker;
  Probe probe;
  std::atomic<std::uint32_t> sender_asleep;
  std::uint32_t sender_raises_barriers;
  Geometry geometry;
  // Written by the owner: cells, and bytes of the bulk ring, that are free again.
  alignas(kCacheLine) std::atomic<std::uint64_t> cells_consumed;
  std::atomic<std::uint64_t> bulk_consumed;
  // One more than the position of the last cell whose assisted access the owner is at, unless it
  // was withdrawn, or was. Not beside what the sender watches: that line would go there and back
  // once more.
  std::atomic<std::uint64_t> assisted_taken;
  // Between queue pairs: answer_word() of a cell that was not executed; 0: none. The owner sets it,
  // the sender clears it to have the cell looked at again, or withdraws the cell. Both by exchange.
  std::atomic<std::uint64_t> answer;
  alignas(kCacheLine) std::atomic<Attention> attention;
  // Written by both.
  AssistedAccess assisted;
};

// kMatched ends by one compare-and-swap, so both sides agree on the outcome: a receiver that was
// stopped reports no success with bytes that it read after the sender got its buffers back.
enum class RendezvousState : std::uint32_t {
  kIdle = 0,     // the sender may use it
  kOffered = 1,  // set by the sender
  kMatched = 2,  // set by the receiver: both copy
  kDone = 3,     // set by the receiver: over
  // Set by the sender: failed or withdrawn, its buffers are not the message's any more. A withdrawn
  // one becomes kDone when the receiver has read the cell that says so.
  kAbandoned = 4,
};

// A part of a message: where it is in the sender, and where it goes in the receiver.
struct SgePair {
  LocalRange source;
  LocalRange target;
};

// A large message on its way from one process's memory into the other's. Everything that a message
// of one SGE needs lies in one cache line.
struct alignas(kCacheLine) Rendezvous {
  std::atomic<RendezvousState> state;
  std::atomic<std::int32_t> fault;    // errno of the first copy that failed, or 0
  std::atomic<std::uint32_t> copied;  // chunks
  std::uint16_t source_count;
  std::uint16_t target_count;
  // Both sides take chunks, the receiver from the front (low half), the sender from the back.
  std::atomic<std::uint64_t> claims;
  std::uint64_t matched_length;
  SgePair sges[link::kMaxLinkSges];  // the two lists have nothing to do with each other
};

// Where a message's payload is.
enum class CellKind : std::uint8_t {
  kInline = 0,
  kBulk = 1,
  kOffered = 2,
  kAssisted = 3,
  kAtomicAssisted = 4,
  kAccessed = 5,
  kWithdrawn = 6,
  kRefused = 7,
};

inline constexpr std::uint8_t kHasData = 1;
inline constexpr std::uint8_t kWantsAck = 2;

// First word of a cell: lap (32 bits), operation, kind, flags, inline length.
struct CellWord {
  std::uint32_t lap;
  link::MessageOperation operation;
  CellKind kind;
  std::uint8_t flags;
  std::uint8_t inline_length;

  constexpr std::uint64_t pack() const {
    return std::uint64_t{lap} | std::uint64_t{static_cast<std::uint8_t>(operation)} << 32 |
           std::uint64_t{static_cast<std::uint8_t>(kind)} << 40 | std::uint64_t{flags} << 48 |
           std::uint64_t{inline_length} << 56;
  }
  static constexpr CellWord unpack(std::uint64_t word) {
    return {static_cast<std::uint32_t>(word),
            static_cast<link::MessageOperation>(word >> 32 & 0xff),
            static_cast<CellKind>(word >> 40 & 0xff), static_cast<std::uint8_t>(word >> 48),
            static_cast<std::uint8_t>(word >> 56)};
  }
};

// A payload in the bulk ring: `end` counts bytes since the beginning of the ring's life.
struct BulkPayload {
  std::uint64_t end;
  std::uint32_t offset;
  std::uint32_t length;
  std::uint32_t rendezvous_id;  // with kWantsAck
  std::uint32_t zero;           // no padding: it would show the peer what lay on the stack
};

// A payload in the sender's memory; or one that was, in a cell of kind kWithdrawn.
struct OfferedPayload {
  std::uint64_t length;
  std::uint32_t rendezvous_id;
  std::uint32_t zero;
};

// No message: an access of `length` bytes at the remote address `tag` of the region with key
// `data`. The operation is kWriteEvent or kReadEvent.
struct AssistedPayload {
  std::uint32_t length;
  // Set by the sender when it does without; read by the owner after it has set assisted_taken. The
  // sender runs a barrier in between, or else the owner fences.
  std::uint32_t withdrawn;
  std::byte bytes[kAssistedBytesInCell];  // what is written, if it fits
};

inline constexpr std::uint32_t kAtomicAssistedBytesInCell = 28;
// The operand and what to compare with fit into an AssistedAccess, one behind the other.
inline constexpr std::uint32_t kAtomicAssistedBytes = 1016;

// No message either: an atomic operation of `length` bytes at the remote address `tag` of the
// region with key `data`. The operation is kWriteEvent.
struct AtomicAssistedPayload {
  std::uint32_t length;
  std::uint32_t withdrawn;  // as in AssistedPayload
  AtomicForm form;
  AtomicOp op;
  AtomicType type;
  // The operand, then what to compare with, if all of that fits; else it is in the AssistedAccess,
  // to whose first half the initial value goes.
  std::byte bytes[kAtomicAssistedBytesInCell];
};

// No message: tells that regions were accessed in a way that needs these rights.
struct AccessedPayload {
  Access access;
  std::uint32_t count;
  std::uint64_t keys[memory::kHazards];
};

// No message: tells that the sender has refused itself an access at the remote address `tag` of the
// region with key `data`. The owner looks for itself.
struct RefusedPayload {
  std::uint64_t length;
  Access need;            // what it needs
  std::uint32_t element;  // bytes of an element of an atomic operation; 0: it is none
};

// Two cache lines, of which short messages use one.
struct alignas(2 * kCacheLine) Cell {
  std::atomic<std::uint64_t> word;
  std::uint64_t tag;
  std::uint64_t data;
  union {
    std::byte bytes[kInlineBytes];
    BulkPayload bulk;
    OfferedPayload offered;
    AssistedPayload assisted;
    AtomicAssistedPayload atomic;
    AccessedPayload accessed;
    RefusedPayload refused;
  };
};

static_assert(sizeof(Cell) == kCellBytes && sizeof(Rendezvous) == kRendezvousBytes);
static_assert(offsetof(AtomicAssistedPayload, withdrawn) == offsetof(AssistedPayload, withdrawn));
static_assert(2 * kAtomicAssistedBytes <= kAssistedBytes);
static_assert(std::atomic<std::uint64_t>::is_always_lock_free);

inline constexpr std::uint64_t kHeaderBytes = 4096;
inline constexpr std::uint64_t kMadsAt = kHeaderBytes;
inline constexpr std::uint64_t kSlotsAt = align_up(kMadsAt + kMads * sizeof(MadCell), kSlotPage);
static_assert(sizeof(MailboxHeader) <= kHeaderBytes && sizeof(SlotHeader) <= kCellsAt);
static_assert(kMads == 64);  // a bit each in MailboxHeader::mads

// Reads what a peer can change at any time, exactly once: the value that is checked is the value
// that is used.
template <class T>
T read_once(const T& shared) {
  return *static_cast<const volatile T*>(&shared);
}

// Byte offset of slot `number` in the file.
constexpr std::uint64_t slot_at(std::uint32_t number) { return kSlotsAt + number * kSlotBytes; }

// Bytes that an atomic assisted access of `length` bytes brings: the operand, and what to compare
// with.
constexpr std::size_t operand_bytes(const AtomicAction& action, std::size_t length) {
  return (action.has_operand() ? length : 0) + (action.compares() ? length : 0);
}

}  // namespace weft::shm
