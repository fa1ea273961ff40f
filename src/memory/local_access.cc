// SPDX-License-Identifier: BSD-2-Clause
// How are the local buffers of work requests copied, each under its local key?
#include "memory/local_access.h"

#include <algorithm>
#include <cstring>

#include "os/user_memory.h"

namespace weft::memory {
namespace {

// Calls copy(part, done) for each part of the bytes [offset, offset + length) of `segments`, of
// which `done` bytes come before it, until that is false. False when that was, or when the segments
// have fewer bytes.
template <class Copy>
bool each_part(std::span<const work::Segment> segments, std::uint64_t offset, std::uint64_t length,
               const Copy& copy) {
  std::uint64_t done = 0;
  for (const work::Segment& segment : segments) {
    if (done == length) return true;
    if (offset >= segment.length) {
      offset -= segment.length;
      continue;
    }
    const std::uint64_t part = std::min<std::uint64_t>(segment.length - offset, length - done);
    const work::Segment found{static_cast<std::byte*>(segment.base) + offset, part, segment.key};
    if (!copy(found, done)) return false;
    done += part;
    offset = 0;
  }
  return done == length;
}

// The memory of a part, pinned in `guard`; nothing when its key allows no such access.
std::span<const LocalRange> pin(AccessGuard& guard, DomainId domain, Access need,
                                const work::Segment& part, AccessError& error) {
  const RemoteRange range = range_of(part);
  const Grant grant = guard.check_and_pin({domain, need}, need, {&range, 1});
  error = grant.error;
  return grant.ok() ? grant.segments : std::span<const LocalRange>();
}

}  // namespace

BufferRanges::BufferRanges(std::span<const work::Segment> list, std::uint64_t offset,
                           std::uint64_t most) {
  for (const work::Segment& each : list) {
    if (most == 0 || count == keys.size()) return;
    if (offset >= each.length) {
      offset -= each.length;
      continue;
    }
    const std::uint64_t part = std::min<std::uint64_t>(each.length - offset, most);
    keys[count++] = range_of({static_cast<std::byte*>(each.base) + offset, part, each.key});
    length += part;
    most -= part;
    offset = 0;
  }
}

bool LocalAccess::gather(std::span<const work::Segment> segments, std::uint64_t offset,
                         std::span<std::byte> out) {
  gather_error_ = AccessError::kNone;
  return each_part(segments, offset, out.size(),
                   [&](const work::Segment& part, std::uint64_t done) {
                     std::byte* const to = out.data() + done;
                     if (part.key == 0) {
                       std::memcpy(to, part.base, part.length);
                       return true;
                     }
                     const auto memory = pin(reader_, domain_, kLocalRead, part, gather_error_);
                     const bool copied = !memory.empty() && os::gather(to, memory, part.length);
                     reader_.release();
                     return copied;
                   });
}

bool LocalAccess::scatter(std::span<const work::Segment> segments, std::uint64_t offset,
                          std::span<const std::byte> bytes) {
  scatter_error_ = AccessError::kNone;
  return each_part(
      segments, offset, bytes.size(), [&](const work::Segment& part, std::uint64_t done) {
        const std::byte* const from = bytes.data() + done;
        if (part.key == 0) {
          std::memcpy(part.base, from, part.length);
          return true;
        }
        const auto memory = pin(writer_, domain_, kLocalWrite, part, scatter_error_);
        const bool copied = !memory.empty() && os::scatter(memory, from, part.length).has_value();
        writer_.release();
        return copied;
      });
}

}  // namespace weft::memory
