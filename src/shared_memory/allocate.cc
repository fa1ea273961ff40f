// SPDX-License-Identifier: BSD-2-Clause
// How does a process get memory for a region?
#include <cerrno>
#include <string>

#include "base/types.h"
#include "os/huge_pages.h"
#include "region_name.h"
#include "shared_memory/region_memory.h"

namespace weft::shared_memory {
namespace {

using Parts = RegionMemory::Parts;

constexpr unsigned kBaseOrder = 12;
constexpr unsigned kHugeOrder = 21;
static_assert(os::kHugePage == std::size_t{1} << kHugeOrder);

// Half of the addresses that a process has on x86-64: a longer mapping fails in several ways.
constexpr std::size_t kMostBytes = std::size_t{1} << 46;

constexpr Obtained kBase{Backing::kBasePages, kBaseOrder};
constexpr Obtained kTransparent{Backing::kTransparentHugePages, kHugeOrder};
constexpr Obtained kHugetlb{Backing::kHugetlbPages, kHugeOrder};

bool is_multiple(const void* at, std::size_t unit) {
  return reinterpret_cast<std::uintptr_t>(at) % unit == 0;
}

Status check(const Wish& wish) {
  constexpr unsigned kGrants = 0666;
  if (wish.length == 0) return Error{EINVAL, "a region of 0 bytes"};
  if (!is_multiple(wish.at, os::page_size()))
    return Error{EINVAL, "the address is no multiple of the page size"};
  if ((wish.grants & ~kGrants) != 0) return Error{EINVAL, "grants are mode bits of 0666"};
  const bool shares = wish.grants != 0;
  if (shares && wish.length % os::page_size() != 0)
    return Error{EINVAL, "a shared region of " + std::to_string(wish.length) +
                             " bytes, which are not whole pages"};
  if (shares && wish.settings.type == AllocationType::kAnonymous)
    return Error{EINVAL, "anonymous memory cannot be shared"};
  if (wish.length > kMostBytes)
    return Error{ENOMEM, "no room for " + std::to_string(wish.length) + " bytes"};
  return {};
}

// Blocks of order 21 serve all smaller orders above that of a base page.
bool wants_huge_pages(const Wish& wish) {
  const AllocatorSettings& s = wish.settings;
  if (s.type == AllocationType::kAnonymous || s.min_order > kHugeOrder) return false;
  if (!is_multiple(wish.at, os::kHugePage)) return false;
  return s.min_order > kBaseOrder || (s.max_order >= kHugeOrder && wish.length >= os::kHugePage);
}

bool may_have_base_pages(const AllocatorSettings& s) {
  return s.type != AllocationType::kContiguous || s.min_order == kBaseOrder;
}

os::Placement place_of(const Wish& wish, std::size_t alignment) {
  return {.at = wish.at, .only_there = wish.at != nullptr, .alignment = alignment};
}

Result<RegionMemory> shared(const Wish& wish, const Obtained& pages) {
  const bool huge = pages.block_order == kHugeOrder;
  auto file = os::PublishedFile::create(region_directory(), wish.length, huge);
  if (!file) return file.error();
  auto memory = file.value()->map(wish.at);
  if (!memory) return memory.error();
  auto id = publish_region(*file.value(), wish.grants);
  if (!id) return id.error();
  return RegionMemory(Parts{.memory = std::move(memory).value(),
                            .file = std::move(file).value(),
                            .length = wish.length,
                            .obtained = pages,
                            .id = id.value()});
}

Result<RegionMemory> hugetlb(const Wish& wish) {
  os::Placement place = place_of(wish, os::kHugePage);
  place.hugetlb = true;
  auto memory = os::Mapping::place(align_up(wish.length, os::kHugePage), place);
  if (!memory) return memory.error();
  if (Status ok = os::back_by_hugetlb_pages(memory.value()); !ok) return ok.error();
  return RegionMemory(
      Parts{.memory = std::move(memory).value(), .length = wish.length, .obtained = kHugetlb});
}

Result<RegionMemory> transparent(const Wish& wish) {
  const os::Placement place = place_of(wish, os::kHugePage);
  auto memory = os::Mapping::place(align_up(wish.length, os::kHugePage), place);
  if (!memory) return memory.error();
  if (Status ok = os::back_by_huge_pages(memory.value()); !ok) return ok.error();
  return RegionMemory(
      Parts{.memory = std::move(memory).value(), .length = wish.length, .obtained = kTransparent});
}

Result<RegionMemory> in_huge_pages(const Wish& wish) {
  if (wish.grants != 0) return shared(wish, kTransparent);
  auto memory = hugetlb(wish);
  return memory ? std::move(memory) : transparent(wish);
}

Result<RegionMemory> in_base_pages(const Wish& wish) {
  if (wish.grants != 0) return shared(wish, kBase);
  const os::Placement place = place_of(wish, os::page_size());
  auto memory = os::Mapping::place(align_up(wish.length, os::page_size()), place);
  if (!memory) return memory.error();
  return RegionMemory(
      Parts{.memory = std::move(memory).value(), .length = wish.length, .obtained = kBase});
}

}  // namespace

Result<RegionMemory> allocate(const Wish& wish) {
  if (Status ok = check(wish); !ok) return ok.error();
  if (wish.grants != 0) sweep_regions();
  Error problem{ENOMEM, "no blocks of an order that is allowed are to be had"};
  if (wants_huge_pages(wish)) {
    auto memory = in_huge_pages(wish);
    if (memory) return memory;
    problem.message += ": " + memory.error().message;
    if (memory.error().code == EINVAL) problem.code = EINVAL;
  }
  if (may_have_base_pages(wish.settings)) return in_base_pages(wish);
  return problem;
}

}  // namespace weft::shared_memory
