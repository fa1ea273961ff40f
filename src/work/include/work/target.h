// SPDX-License-Identifier: BSD-2-Clause
// What does a responder need of the memory and the receives that requests name?
#pragma once

#include <cstdint>
#include <span>

#include "base/types.h"

namespace weft::work {

// May a request be carried out?
struct RequestVerdict {
  enum class Kind : std::uint8_t {
    kYes,
    kNotReady,     // no receive is posted: the peer shall try again later
    kInvalid,      // it is longer than the receive, or else no proper request
    kAccess,       // `detail` says which rule forbids it, below 16
    kOperational,  // it cannot be done for reasons of this side: memory has gone
    kGivenUp,      // the message has begun, but its bytes are kept no more: it shall come again
  };
  Kind kind = Kind::kYes;
  std::uint8_t detail = 0;

  bool ok() const { return kind == Kind::kYes; }
};
inline constexpr RequestVerdict kInvalidRequest{RequestVerdict::Kind::kInvalid, 0};

// Memory of the target that a request names.
struct RemoteMemory {
  std::uint64_t address = 0;
  std::uint32_t key = 0;  // the remote key (rkey)
  std::uint32_t length = 0;
};

// The operands of a compare and swap, or of a fetch and add, on the 8 bytes at `address`.
struct AtomicOperands {
  std::uint64_t address = 0;
  std::uint32_t key = 0;
  std::uint64_t swap_or_add = 0;
  std::uint64_t compare = 0;
};

// What the last packet of a SEND or WRITE says beside its bytes.
struct MessageEnd {
  bool has_immediate = false;
  bool invalidates = false;  // the key `invalidated` becomes invalid
  bool solicited = false;
  std::uint32_t immediate = 0;
  std::uint32_t invalidated = 0;
};

// The memory and the receives of one end of a flow, used by its responder, which has checked that
// each packet is the next one. All memory accesses are checked here, each time.
class Target {
 public:
  virtual ~Target() = default;

  // A request of an extended reliable connection (annex A14) begins, which names that shared
  // receive queue: whose receives it takes, and in whose protection domain memory is. kInvalid when
  // there is none of that number, or this end may not use it; else all calls up to the next one of
  // this are about it, but read(), whose access was allowed then. Other services have no such
  // number.
  virtual RequestVerdict may_use(std::uint32_t /*shared_receive*/) {
    return {RequestVerdict::Kind::kInvalid, 0};
  }

  // A message begins; its bytes follow in order, then its end. Only its beginning may find that
  // nothing is ready; only its going on, and of reliable datagrams only, that it was given up. A
  // verdict that is not kYes leaves nothing behind.
  virtual RequestVerdict message_begins() = 0;
  virtual RequestVerdict message_goes_on(std::span<const std::byte> bytes) = 0;
  // May the message that has begun invalidate that key at its end? Nothing is invalidated before
  // message_ends() names the key again. A target without such keys refuses all of them.
  virtual RequestVerdict may_invalidate(std::uint32_t /*key*/) {
    return {RequestVerdict::Kind::kAccess, 0};
  }
  virtual void message_ends(const MessageEnd& end) = 0;
  // What has begun will not end: nothing of it was received.
  virtual void message_breaks() = 0;

  // May that memory be written to, or read? Nothing is touched. Also asked when it has no bytes:
  // neither key nor address is validated then (IBTA 9.7.4.1.1).
  virtual RequestVerdict may_access(Access need, const RemoteMemory& memory) = 0;
  // Writes bytes behind the first `offset` ones of memory that may_access() allowed.
  virtual RequestVerdict write(const RemoteMemory& memory, std::uint64_t offset,
                               std::span<const std::byte> bytes) = 0;
  // Is there a receive for the immediate value that comes with the last packet of a write?
  virtual RequestVerdict may_report_immediate() = 0;
  // A write has ended.
  virtual void written(const RemoteMemory& memory, const MessageEnd& end) = 0;
  // Reads bytes behind the first `offset` ones of memory that may_access() allowed some time ago.
  virtual RequestVerdict read(const RemoteMemory& memory, std::uint64_t offset,
                              std::span<std::byte> out) = 0;
  // Carries out a compare and swap, or else a fetch and add. kInvalid when it is not aligned.
  virtual RequestVerdict atomic(bool compares, const AtomicOperands& what,
                                std::uint64_t& original) = 0;
};

}  // namespace weft::work
