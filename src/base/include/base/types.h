// SPDX-License-Identifier: BSD-2-Clause
// Which numbers must never be mixed up, and what is a range of remote memory?
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>

namespace weft {

// A number with a meaning: comparable with its own kind only. `v` is the raw value.
template <class Tag, class T>
struct Strong {
  T v{};
  friend auto operator<=>(const Strong&, const Strong&) = default;  // NOLINT(modernize-use-nullptr)
};

// Names a region within its protection domain (fi_mr_key, rkey).
using RegionKey = Strong<struct RegionKeyTag, std::uint64_t>;

// Names a protection domain within its process. 0 is never used.
using DomainId = Strong<struct DomainIdTag, std::uint32_t>;

// Rights of a region, as bits of one mask: what a local operation or a remote peer may do.
enum class Access : std::uint32_t {
  kNone = 0,
  kSend = 1,
  kReceive = 2,
  kRead = 4,
  kWrite = 8,
  kRemoteRead = 16,
  kRemoteWrite = 32,
  kRemoteAtomic = 64,  // atomic operations of queue pairs; libfabric's need the two above
};

constexpr Access operator|(Access a, Access b) {
  return static_cast<Access>(static_cast<std::uint32_t>(a) | static_cast<std::uint32_t>(b));
}

// Rights of every region whose bytes a local work request may read, or change (ibv_reg_mr(3)).
inline constexpr Access kLocalRead = Access::kSend | Access::kWrite;
inline constexpr Access kLocalWrite = Access::kReceive | Access::kRead;

// Accesses that an endpoint performs for its peers, by the rights that they need: what it was
// opened for (fi_getinfo(3), FI_RMA and FI_ATOMIC with FI_REMOTE_READ and FI_REMOTE_WRITE).
struct ServedAccess {
  Access rma = Access::kRemoteRead | Access::kRemoteWrite;
  Access atomics = Access::kRemoteRead | Access::kRemoteWrite;
  bool atomic_right = false;  // atomic operations need kRemoteAtomic, and no other right

  bool operator==(const ServedAccess&) const = default;
};

// True when `have` includes every right of `need`.
constexpr bool includes(Access have, Access need) {
  const auto n = static_cast<std::uint32_t>(need);
  return (static_cast<std::uint32_t>(have) & n) == n;
}

// Memory at a peer, as the initiator names it (fi_rma_iov). `address` is a virtual address or an
// offset into the region, as the region was registered.
struct RemoteRange {
  std::uint64_t address = 0;
  std::uint64_t length = 0;
  RegionKey key;
};

// One SGE of local memory; layout of struct iovec.
struct LocalRange {
  void* base = nullptr;
  std::size_t length = 0;
};

// Smallest multiple of `unit` (a power of two) that is not below `value`.
constexpr std::uint64_t align_up(std::uint64_t value, std::uint64_t unit) {
  return (value + unit - 1) & ~(unit - 1);
}

// Bytes of one cache line on every processor that Weft supports.
inline constexpr std::size_t kCacheLine = 64;

}  // namespace weft
