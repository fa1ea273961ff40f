// SPDX-License-Identifier: BSD-2-Clause
// How does a requester read and write buffers of the program?
#include "user_buffers.h"

#include <algorithm>
#include <type_traits>

#include "os/user_memory.h"

namespace weft::rdm {

using work::Segment;

namespace {

// Calls copy(part, its length, bytes before it) for the parts of those bytes, until that is false.
template <class Copy>
bool each_part(std::span<const Segment> segments, std::uint64_t offset, std::size_t length,
               const Copy& copy) {
  std::size_t done = 0;
  for (const Segment& segment : segments) {
    if (done == length) return true;
    if (offset >= segment.length) {
      offset -= segment.length;
      continue;
    }
    const std::size_t part = std::min(segment.length - offset, length - done);
    if (!copy(static_cast<std::byte*>(segment.base) + offset, part, done)) return false;
    done += part;
    offset = 0;
  }
  return done == length;
}

class UserBuffers final : public work::LocalMemory {
 public:
  bool gather(std::span<const Segment> segments, std::uint64_t offset,
              std::span<std::byte> out) override {
    return each_part(segments, offset, out.size(),
                     [&](const std::byte* from, std::size_t length, std::size_t done) {
                       return os::copy_from_user(out.data() + done, from, length);
                     });
  }
  bool scatter(std::span<const Segment> segments, std::uint64_t offset,
               std::span<const std::byte> bytes) override {
    return each_part(segments, offset, bytes.size(),
                     [&](std::byte* to, std::size_t length, std::size_t done) {
                       return os::copy_to_user(to, bytes.data() + done, length);
                     });
  }
};

}  // namespace

// Endpoints that live until the process exits use it then.
work::LocalMemory& user_buffers() {
  static_assert(std::is_trivially_destructible_v<UserBuffers>);
  static constinit UserBuffers instance;
  return instance;
}

}  // namespace weft::rdm
