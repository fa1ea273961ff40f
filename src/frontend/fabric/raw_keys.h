// SPDX-License-Identifier: BSD-2-Clause
// Which raw keys of its peers' regions has a domain mapped? fi_mr(3), fi_mr_map_raw
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <span>
#include <unordered_map>

#include "base/types.h"
#include "os/origin.h"

namespace weft::fabric {

inline constexpr std::size_t kMaxRawKeySize = 64;

// The key of a region as its owner sends it to its peers.
struct RawKey {
  std::array<std::uint8_t, kMaxRawKeySize> bytes{};
  std::size_t size = 0;

  std::span<const std::uint8_t> view() const { return {bytes.data(), size}; }
};

// The raw keys of one domain: all have one size. Without FI_MR_RAW they are the keys of the region
// table, in the host's byte order; with it random bytes, of which all together make that key.
// Any thread.
class RawKeys {
 public:
  // `required`: FI_MR_RAW, so that peers' regions are accessed by mapped keys only.
  RawKeys(bool required, std::size_t size);

  bool required() const { return required_; }
  // Bytes of each, at most kMaxRawKeySize.
  std::size_t size() const { return size_; }
  // Where keys are required to be raw: that of a new region.
  RawKey random() const;
  // Elsewhere: that of the region with this key.
  RawKey of(RegionKey key) const;
  // The region table's key, for a raw key of size() bytes.
  RegionKey key_of(std::span<const std::uint8_t> raw) const;

  // Maps a raw key of size() bytes, once more if it is mapped. Returns the key for data transfers.
  RegionKey map(std::span<const std::uint8_t> raw);
  // Takes one mapping back. False when the key is not mapped.
  bool unmap(RegionKey key);
  bool is_mapped(RegionKey key) const;
  bool none_mapped() const;
  // In a forked child they are the parent's.
  bool inherited() const { return origin_.inherited(); }

 private:
  const os::Origin origin_;
  const bool required_;
  const std::size_t size_;
  mutable std::mutex mutex_;
  std::unordered_map<std::uint64_t, std::size_t> mappings_;  // how many of each key
};

}  // namespace weft::fabric
