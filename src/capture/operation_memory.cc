// SPDX-License-Identifier: BSD-2-Clause
// Which bytes do the engines have that repeat an operation?
#include "operation_memory.h"

#include <algorithm>

#include "os/user_memory.h"
#include "rdm/user_buffers.h"

namespace weft::capture {

// A buffer that is not mapped any more is recorded as zeros: a failure would end the flow.
bool OperationMemory::gather(std::span<const work::Segment> segments, std::uint64_t offset,
                             std::span<std::byte> out) {
  if (segments.empty()) {
    take(out);
  } else if (!rdm::user_buffers().gather(segments, offset, out)) {
    std::ranges::fill(out, std::byte{});
  }
  return true;
}

memory::Accessed OperationMemory::read(const RemoteRange&, std::span<std::byte> bytes) {
  take(bytes);
  return {};
}

memory::Accessed OperationMemory::change(const AtomicAction&, const RemoteRange& range,
                                         const std::byte*, std::byte* fetched, memory::Patience) {
  take({fetched, range.length});
  return {};
}

void OperationMemory::take(std::span<std::byte> out) {
  std::ranges::fill(out, std::byte{});
  if (!os::gather(out.data(), bytes_, out.size(), done_)) std::ranges::fill(out, std::byte{});
  done_ += out.size();
}

}  // namespace weft::capture
