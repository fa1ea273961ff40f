// SPDX-License-Identifier: BSD-2-Clause
// How does a process get the memory of another one's region?
#include <cerrno>
#include <string>

#include "region_name.h"
#include "shared_memory/region_memory.h"

namespace weft::shared_memory {
namespace {

Obtained obtained_by_creator(bool huge_pages) {
  if (huge_pages) return {Backing::kTransparentHugePages, 21};
  return {Backing::kBasePages, 12};
}

}  // namespace

Result<RegionMemory> attach(const AttachWish& wish) {
  sweep_regions();
  const auto files = files_of_region(wish.id);
  if (!files) return files.error();
  if (files.value().empty())
    return Error{ENOENT, "no process shares a region " + std::to_string(wish.id)};
  if (files.value().size() > 1)
    return Error{EINVAL, "several files claim to be region " + std::to_string(wish.id)};
  auto found = os::map_published(files.value()[0], wish.writable, wish.hint);
  if (!found) return found.error();
  os::PublishedMemory& part = found.value();
  return RegionMemory(RegionMemory::Parts{.memory = std::move(part.memory),
                                          .length = part.length,
                                          .obtained = obtained_by_creator(part.huge_pages),
                                          .writable = wish.writable});
}

}  // namespace weft::shared_memory
