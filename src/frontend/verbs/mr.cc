// SPDX-License-Identifier: BSD-2-Clause
// Memory regions: ibv_reg_mr(3), ibv_rereg_mr(3)
#include <cerrno>

#include "boundary.h"
#include "objects.h"
#include "operations.h"
#include "os/process_memory.h"

namespace weft::verbs {
namespace {

constexpr unsigned kKnown = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
                            IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC | IBV_ACCESS_MW_BIND |
                            IBV_ACCESS_ZERO_BASED | IBV_ACCESS_ON_DEMAND | IBV_ACCESS_HUGETLB;
constexpr unsigned kNeedsLocalWrite = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC;

// Flags of the optional range may be ignored (ibv_reg_mr(3)).
int check_access(unsigned access) {
  const unsigned counts = access & ~static_cast<unsigned>(IBV_ACCESS_OPTIONAL_RANGE);
  if ((counts & ~kKnown) != 0) return EOPNOTSUPP;
  const bool changes = (counts & kNeedsLocalWrite) != 0;
  return changes && (counts & IBV_ACCESS_LOCAL_WRITE) == 0 ? EINVAL : 0;
}

Access region_rights_of(unsigned access) {
  Access rights = kLocalRead;
  if ((access & IBV_ACCESS_LOCAL_WRITE) != 0) rights = rights | kLocalWrite;
  if ((access & IBV_ACCESS_REMOTE_WRITE) != 0) rights = rights | Access::kRemoteWrite;
  if ((access & IBV_ACCESS_REMOTE_READ) != 0) rights = rights | Access::kRemoteRead;
  if ((access & IBV_ACCESS_REMOTE_ATOMIC) != 0) rights = rights | Access::kRemoteAtomic;
  return rights;
}

bool is_implicit(const void* address, std::size_t length, unsigned access) {
  return address == nullptr && length == SIZE_MAX && (access & IBV_ACCESS_ON_DEMAND) != 0;
}

int check_memory(const void* address, std::size_t length, unsigned access) {
  if ((access & IBV_ACCESS_ON_DEMAND) != 0 || length == 0) return 0;
  return os::is_mapped(address, length) ? 0 : EFAULT;
}

memory::RegionAttributes region_attributes_of(DomainId domain, void* address, std::size_t length,
                                              std::uint64_t start, unsigned access) {
  memory::RegionAttributes attributes;
  attributes.domain = domain;
  attributes.access = region_rights_of(access);
  attributes.base = reinterpret_cast<std::uint64_t>(address);
  attributes.length = length;
  attributes.start = start;
  attributes.choose_key = attributes.short_key = true;
  return attributes;
}

ibv_mr* reg_mr(ibv_pd* pd, void* address, std::size_t length, std::uint64_t start,
               unsigned access) {
  return at_c_border<ibv_mr>([&]() -> ibv_mr* {
    if (pd == nullptr) return null_with(EINVAL);
    auto& domain = object_of(pd);
    int error = check_handle(domain);
    if (error == 0) error = check_access(access);
    if (error == 0 && !is_implicit(address, length, access)) {
      error = check_memory(address, length, access);
    }
    if (error != 0) return null_with(error);
    auto region = std::make_unique<VerbsMr>(pd->context);
    auto added = VerbsContext::of(pd->context)
                     .core()
                     .regions()
                     .add(region_attributes_of(domain.domain, address, length, start, access));
    if (!added) return null_with(errno_of(added.error()));
    region->registration = added.value();
    region->domain = UseOf<VerbsPd>(domain);
    region->pd = pd;
    region->addr = address;
    region->length = length;
    region->access = access;
    region->start = start;
    region->lkey = region->rkey = static_cast<std::uint32_t>(added.value().key.v);
    return region.release();
  });
}

std::uint64_t start_of(const void* address, unsigned access) {
  return (access & IBV_ACCESS_ZERO_BASED) != 0 ? 0 : reinterpret_cast<std::uint64_t>(address);
}

int dereg_mr(ibv_mr* mr) {
  if (mr == nullptr) return EINVAL;
  auto& region = object_of(mr);
  if (const int error = check_handle(region); error != 0) return error;
  if (region.in_use()) return EBUSY;
  const Status removed =
      VerbsContext::of(region.context).core().regions().remove(region.registration);
  if (!removed) return errno_of(removed.error());
  delete &region;
  return 0;
}

int rereg_mr(ibv_mr* mr, int flags, ibv_pd* pd, void* address, std::size_t length, int access) {
  constexpr int kFlags =
      IBV_REREG_MR_CHANGE_TRANSLATION | IBV_REREG_MR_CHANGE_PD | IBV_REREG_MR_CHANGE_ACCESS;
  const auto refuse = [](int error) {
    errno = error;
    return IBV_REREG_MR_ERR_INPUT;
  };
  const bool moves = (flags & IBV_REREG_MR_CHANGE_TRANSLATION) != 0;
  const bool changes_domain = (flags & IBV_REREG_MR_CHANGE_PD) != 0;
  const bool changes_access = (flags & IBV_REREG_MR_CHANGE_ACCESS) != 0;
  if (mr == nullptr || flags == 0 || (flags & ~kFlags) != 0) return refuse(EINVAL);
  if (moves && (address == nullptr || length == 0)) return refuse(EINVAL);
  if (changes_domain && pd == nullptr) return refuse(EINVAL);
  auto& region = object_of(mr);
  int error = check_handle(region);
  if (error == 0 && changes_domain) error = check_handle(object_of(pd));
  if (error != 0) return refuse(error);
  const unsigned wanted = changes_access ? static_cast<unsigned>(access) : region.access;
  if (error = check_access(wanted); error != 0) return refuse(error);
  void* const base = moves ? address : region.addr;
  const std::size_t size = moves ? length : region.length;
  if (error = check_memory(base, size, wanted); error != 0) return refuse(error);
  VerbsPd& domain = changes_domain ? object_of(pd) : *region.domain.get();
  const std::uint64_t start = moves ? start_of(base, wanted) : region.start;
  const Status replaced =
      VerbsContext::of(region.context)
          .core()
          .regions()
          .replace(region.registration,
                   region_attributes_of(domain.domain, base, size, start, wanted));
  if (!replaced) {
    errno = errno_of(replaced.error());
    return IBV_REREG_MR_ERR_CMD;
  }
  if (changes_domain) {
    region.domain = UseOf<VerbsPd>(domain);
    region.pd = pd;
  }
  region.addr = base;
  region.length = size;
  region.start = start;
  region.access = wanted;
  return 0;
}

}  // namespace

// Memory windows are not offered.
ibv_mw* alloc_mw(ibv_pd*, ibv_mw_type) { return null_with(EOPNOTSUPP); }

int bind_mw(ibv_qp*, ibv_mw*, ibv_mw_bind*) { return status_with(EOPNOTSUPP); }

int dealloc_mw(ibv_mw*) { return status_with(EOPNOTSUPP); }

}  // namespace weft::verbs

extern "C" {

using weft::verbs::reg_mr;

ibv_mr* ibv_reg_mr(ibv_pd* pd, void* address, std::size_t length, int access) {
  const auto flags = static_cast<unsigned>(access);
  return reg_mr(pd, address, length, weft::verbs::start_of(address, flags), flags);
}
ibv_mr* ibv_reg_mr_iova(ibv_pd* pd, void* address, std::size_t length, std::uint64_t iova,
                        int access) {
  return reg_mr(pd, address, length, iova, static_cast<unsigned>(access));
}
ibv_mr* ibv_reg_mr_iova2(ibv_pd* pd, void* address, std::size_t length, std::uint64_t iova,
                         unsigned access) {
  return reg_mr(pd, address, length, iova, access);
}
int ibv_dereg_mr(ibv_mr* mr) { return weft::verbs::dereg_mr(mr); }
int ibv_rereg_mr(ibv_mr* mr, int flags, ibv_pd* pd, void* address, std::size_t length, int access) {
  return weft::verbs::rereg_mr(mr, flags, pd, address, length, access);
}

// Memory of devices is not offered.
ibv_mr* ibv_reg_dmabuf_mr(ibv_pd*, std::uint64_t, std::size_t, std::uint64_t, int, int) {
  return weft::verbs::null_with(EOPNOTSUPP);
}

}  // extern "C"
