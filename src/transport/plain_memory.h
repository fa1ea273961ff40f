// SPDX-License-Identifier: BSD-2-Clause
// Buffers of a test: they are mapped until the test says otherwise.
#pragma once

#include <algorithm>
#include <cstring>
#include <limits>

#include "work/local_memory.h"

namespace weft::transport::testing {

class PlainMemory final : public work::LocalMemory {
 public:
  static constexpr unsigned kForEver = std::numeric_limits<unsigned>::max();

  unsigned gathers = kForEver;   // that succeed before all others fail
  unsigned scatters = kForEver;  // the same
  std::uint32_t key = 0;         // of the segments that were copied last

  bool gather(std::span<const work::Segment> segments, std::uint64_t offset,
              std::span<std::byte> out) override {
    if (!count(gathers)) return false;
    std::size_t done = 0;
    each(segments, offset, out.size(), [&](std::byte* at, std::size_t length) {
      std::memcpy(out.data() + done, at, length);
      done += length;
    });
    return done == out.size();
  }
  bool scatter(std::span<const work::Segment> segments, std::uint64_t offset,
               std::span<const std::byte> bytes) override {
    if (!count(scatters)) return false;
    std::size_t done = 0;
    each(segments, offset, bytes.size(), [&](std::byte* at, std::size_t length) {
      std::memcpy(at, bytes.data() + done, length);
      done += length;
    });
    return done == bytes.size();
  }

 private:
  static bool count(unsigned& left) {
    if (left == 0) return false;
    if (left != kForEver) --left;
    return true;
  }
  template <class Copy>
  void each(std::span<const work::Segment> segments, std::uint64_t offset, std::size_t length,
            const Copy& copy) {
    for (const work::Segment& segment : segments) {
      const std::size_t skipped = std::min<std::uint64_t>(offset, segment.length);
      offset -= skipped;
      const std::size_t part = std::min(segment.length - skipped, length);
      length -= part;
      if (part == 0) continue;
      key = segment.key;
      copy(static_cast<std::byte*>(segment.base) + skipped, part);
    }
  }
};

}  // namespace weft::transport::testing
