// SPDX-License-Identifier: BSD-2-Clause
// Which memory does a region have? weft_exp_query_mr_memory in verbs_exp.h
#include "exp_memory.h"

#include <fmt/format.h>

#include "boundary.h"
#include "operations.h"
#include "settings.h"

namespace weft::verbs {
namespace {

struct BackingName {
  weft_exp_backing number;
  const char* name;
};

BackingName name_of(shared_memory::Backing backing) {
  switch (backing) {
    case shared_memory::Backing::kTransparentHugePages:
      return {WEFT_EXP_TRANSPARENT_HUGE_PAGES, "transparent huge pages"};
    case shared_memory::Backing::kHugetlbPages:
      return {WEFT_EXP_HUGETLB_PAGES, "hugetlb pages"};
    case shared_memory::Backing::kBasePages:
      break;
  }
  return {WEFT_EXP_BASE_PAGES, "base pages"};
}

}  // namespace

void give_memory(VerbsMr& region, shared_memory::RegionMemory memory) {
  region.memory.emplace(std::move(memory));
  if (!settings().logs) return;
  const shared_memory::Obtained obtained = region.memory->obtained();
  print(fmt::format("region {:#x}: {} bytes at {} in {}, blocks of 2^{} bytes", region.handle,
                    region.length, region.addr, name_of(obtained.backing).name,
                    obtained.block_order));
}

int query_mr_memory(ibv_mr* mr, weft_exp_mr_memory* memory) {
  const VerbsMr& region = object_of(mr);
  if (const int error = check_handle(region); error != 0) return status_with(error);
  if (!region.memory) return status_with(EINVAL);
  const shared_memory::Obtained obtained = region.memory->obtained();
  *memory = {name_of(obtained.backing).number, obtained.block_order};
  return 0;
}

}  // namespace weft::verbs
