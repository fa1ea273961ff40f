// SPDX-License-Identifier: BSD-2-Clause
// Which memory of this process may be read, or written to?
#include "os/mapped_ranges.h"

#include <fcntl.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "memory_map.h"
#include "os/cancellation.h"
#include "os/fd.h"

namespace weft::os {
namespace {

// PROCMAP_QUERY of Linux 6.11: one mapping of a process. Headers may be older.
struct MappingQuery {
  std::uint64_t size = sizeof(MappingQuery);
  std::uint64_t flags = 0;
  std::uint64_t address = 0;
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
  std::uint64_t unused[8] = {};
};
static_assert(sizeof(MappingQuery) == 104);

constexpr const char* kMaps = "/proc/self/maps";
constexpr unsigned long kMappingQuery = _IOWR('f', 17, MappingQuery);
constexpr std::uint64_t kReadable = 1;
constexpr std::uint64_t kWritable = 2;
constexpr std::uint64_t kCoveringOrNext = 16;

void append(std::vector<AddressRange>& found, AddressRange range, const AddressRange& within) {
  range = {std::max(range.begin, within.begin), std::min(range.end, within.end)};
  if (range.begin >= range.end) return;
  if (!found.empty() && found.back().end == range.begin) {
    found.back().end = range.end;
  } else {
    found.push_back(range);
  }
}

}  // namespace

Result<std::vector<AddressRange>> mapped_ranges(const AddressRange& within, bool readable,
                                                bool writable) {
  const CancellationOff off;
  std::vector<AddressRange> found;
  const Fd maps(::open(kMaps, O_RDONLY | O_CLOEXEC));
  if (!maps.valid()) return last_error(kMaps);
  MappingQuery query;
  query.flags = kCoveringOrNext | (readable ? kReadable : 0) | (writable ? kWritable : 0);
  for (query.address = within.begin; query.address < within.end; query.address = query.end) {
    if (::ioctl(maps.get(), kMappingQuery, &query) != 0) {
      if (errno == ENOENT) break;
      return mapped_ranges_by_text(within, readable, writable);
    }
    append(found, {query.begin, query.end}, within);
  }
  return found;
}

Result<std::vector<AddressRange>> mapped_ranges_by_text(const AddressRange& within, bool readable,
                                                        bool writable) {
  std::vector<AddressRange> found;
  if (within.begin >= within.end) return found;
  const auto keep_allowed = [&](const MappingLine& line) {
    const bool allowed = (!readable || line.readable) && (!writable || line.writable);
    if (allowed) append(found, {line.begin, line.end}, within);
  };
  const Status visited = visit_mappings(::getpid(), within.begin, within.end - 1, keep_allowed);
  if (!visited) return visited.error();
  return found;
}

}  // namespace weft::os
