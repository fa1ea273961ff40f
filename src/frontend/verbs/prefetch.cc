// SPDX-License-Identifier: BSD-2-Clause
// How does a program have pages made before they are used? ibv_advise_mr(3)
#include <cerrno>
#include <span>

#include "boundary.h"
#include "memory/access_guard.h"
#include "objects.h"
#include "operations.h"
#include "os/process_memory.h"
#include "os/user_memory.h"

namespace weft::verbs {
namespace {

// Where the kernel cannot make pages for writing in one call, reading each makes it.
bool make_pages(const LocalRange& range, os::CopyDirection direction) {
  return os::have_pages(range.base, range.length, direction) ||
         os::readable(range.base, range.length);
}

int advise(ibv_pd* pd, ibv_advise_mr_advice advice, std::uint32_t flags,
           std::span<const ibv_sge> list) {
  const bool writes = advice == IBV_ADVISE_MR_ADVICE_PREFETCH_WRITE;
  const bool makes = writes || advice == IBV_ADVISE_MR_ADVICE_PREFETCH;
  if (!makes && advice != IBV_ADVISE_MR_ADVICE_PREFETCH_NO_FAULT) return EOPNOTSUPP;
  if (pd == nullptr || list.empty() || (flags & ~unsigned{IBV_ADVISE_MR_FLAG_FLUSH}) != 0) {
    return EINVAL;
  }
  auto guard = memory::AccessGuard::attach(VerbsContext::of(pd->context).core().regions_of_users());
  if (!guard) return errno_of(guard.error());
  const Access need = writes ? kLocalWrite : kLocalRead;
  const auto direction = writes ? os::CopyDirection::kToProcess : os::CopyDirection::kFromProcess;
  for (const ibv_sge& each : list) {
    const RemoteRange range{each.addr, each.length, RegionKey{each.lkey}};
    const memory::Grant grant =
        guard.value()->check_and_pin({object_of(pd).domain, need}, need, {&range, 1});
    if (!grant.ok()) return EFAULT;
    if (!makes) continue;
    for (const LocalRange& part : grant.segments) {
      const bool made = make_pages(part, direction);
      // Without FLUSH the call only begins: a page that cannot be made is found when it is used.
      if (!made && (flags & IBV_ADVISE_MR_FLAG_FLUSH) != 0) return EFAULT;
    }
  }
  return 0;
}

}  // namespace

int advise_mr(ibv_pd* pd, ibv_advise_mr_advice advice, std::uint32_t flags, ibv_sge* list,
              std::uint32_t count) {
  return status_at_c_border([&] { return advise(pd, advice, flags, std::span(list, count)); });
}

}  // namespace weft::verbs
