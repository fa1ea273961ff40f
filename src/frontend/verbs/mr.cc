// SPDX-License-Identifier: BSD-2-Clause
// Memory regions: ibv_reg_mr(3), ibv_rereg_mr(3)
#include "mr.h"

#include <cerrno>

#include "boundary.h"
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
  return (counts & ~kKnown) != 0 ? EOPNOTSUPP : check_rights(access);
}

Access region_rights_of(unsigned access) {
  Access rights = kLocalRead;
  if ((access & IBV_ACCESS_LOCAL_WRITE) != 0) rights = rights | kLocalWrite;
  if ((access & IBV_ACCESS_REMOTE_WRITE) != 0) rights = rights | Access::kRemoteWrite;
  if ((access & IBV_ACCESS_REMOTE_READ) != 0) rights = rights | Access::kRemoteRead;
  if ((access & IBV_ACCESS_REMOTE_ATOMIC) != 0) rights = rights | Access::kRemoteAtomic;
  return rights;
}

int check_memory(const RegionRequest& request) {
  if ((request.access & IBV_ACCESS_ON_DEMAND) != 0 || request.length == 0) return 0;
  return os::is_mapped(request.address, request.length) ? 0 : EFAULT;
}

memory::RegionAttributes region_attributes_of(DomainId domain, const RegionRequest& request) {
  memory::RegionAttributes attributes;
  attributes.domain = domain;
  attributes.access = region_rights_of(request.access);
  attributes.base = reinterpret_cast<std::uint64_t>(request.address);
  attributes.length = request.length;
  attributes.start = request.start;
  attributes.choose_key = attributes.short_key = true;
  return attributes;
}

memory::RegionTable& table_of(const VerbsMr& region) {
  return VerbsContext::of(region.context).core().regions();
}

ibv_mr* reg_mr(ibv_pd* pd, const RegionRequest& request) {
  return pointer_at_border([&]() -> Result<ibv_mr*> {
    auto region = make_region(pd);
    if (!region) return region.error();
    if (const int error = check_access(request.access); error != 0) {
      return Error{error, "these access flags"};
    }
    const Status registered = register_region(*region.value(), request);
    if (!registered) return registered.error();
    return std::move(region).value().release();
  });
}

std::uint64_t start_of(const void* address, unsigned access) {
  return (access & IBV_ACCESS_ZERO_BASED) != 0 ? 0 : reinterpret_cast<std::uint64_t>(address);
}

// Memory that a verb has allocated or mapped goes with the region: no peer uses it any more.
int dereg_mr(ibv_mr* mr) {
  if (mr == nullptr) return EINVAL;
  auto& region = object_of(mr);
  if (const int error = check_handle(region); error != 0) return error;
  if (region.in_use()) return EBUSY;
  if (region.registration) {
    const Status removed = table_of(region).remove(*region.registration);
    if (!removed) return errno_of(removed.error());
  }
  delete &region;
  return 0;
}

// The arguments of ibv_rereg_mr(3).
struct Change {
  int flags = 0;  // enum ibv_rereg_mr_flags
  ibv_pd* pd = nullptr;
  void* address = nullptr;
  std::size_t length = 0;
  unsigned access = 0;

  bool moves() const { return (flags & IBV_REREG_MR_CHANGE_TRANSLATION) != 0; }
  bool changes_domain() const { return (flags & IBV_REREG_MR_CHANGE_PD) != 0; }
  bool changes_access() const { return (flags & IBV_REREG_MR_CHANGE_ACCESS) != 0; }
};

int check_change(const Change& change) {
  constexpr int kFlags =
      IBV_REREG_MR_CHANGE_TRANSLATION | IBV_REREG_MR_CHANGE_PD | IBV_REREG_MR_CHANGE_ACCESS;
  if (change.flags == 0 || (change.flags & ~kFlags) != 0) return EINVAL;
  if (change.moves() && (change.address == nullptr || change.length == 0)) return EINVAL;
  return change.changes_domain() && change.pd == nullptr ? EINVAL : 0;
}

RegionRequest changed(const VerbsMr& region, const Change& change) {
  const unsigned access = change.changes_access() ? change.access : region.access;
  if (!change.moves()) return {region.addr, region.length, region.start, access};
  return {change.address, change.length, start_of(change.address, access), access};
}

// Memory that the region gives back when it moves.
bool is_in_own_memory(const VerbsMr& region, const Change& change) {
  if (!region.memory) return false;
  const auto begin = reinterpret_cast<std::uintptr_t>(change.address);
  const auto own = reinterpret_cast<std::uintptr_t>(region.memory->base());
  return begin < own ? change.length > own - begin : begin - own < region.memory->mapped();
}

int check_changed(const VerbsMr& region, const Change& change) {
  int error = check_handle(region);
  if (error == 0 && change.changes_domain()) error = check_handle(object_of(change.pd));
  if (error == 0 && !region.registration) error = EINVAL;
  if (error != 0) return error;
  if (change.moves() && is_in_own_memory(region, change)) return EINVAL;
  const RegionRequest next = changed(region, change);
  if (error = check_access(next.access); error != 0) return error;
  const bool stays = region.memory.has_value() && !change.moves();
  if (stays && !region.memory->writable() && writes(next.access)) return EACCES;
  return check_memory(next);
}

int rereg_mr(ibv_mr* mr, const Change& change) {
  int error = mr == nullptr ? EINVAL : check_change(change);
  if (error == 0) error = check_changed(object_of(mr), change);
  if (error != 0) {
    errno = error;
    return IBV_REREG_MR_ERR_INPUT;
  }
  VerbsMr& region = object_of(mr);
  const RegionRequest next = changed(region, change);
  VerbsPd& domain = change.changes_domain() ? object_of(change.pd) : *region.domain.get();
  const Status replaced =
      table_of(region).replace(*region.registration, region_attributes_of(domain.domain, next));
  if (!replaced) {
    errno = errno_of(replaced.error());
    return IBV_REREG_MR_ERR_CMD;
  }
  if (change.changes_domain()) {
    region.domain = UseOf<VerbsPd>(domain);
    region.pd = change.pd;
  }
  show(region, next);
  if (change.moves()) region.memory.reset();  // and other processes attach to it no more
  return 0;
}

}  // namespace

int check_rights(unsigned access) {
  const bool changes = (access & kNeedsLocalWrite) != 0;
  return changes && (access & IBV_ACCESS_LOCAL_WRITE) == 0 ? EINVAL : 0;
}

bool writes(unsigned access) { return (access & (IBV_ACCESS_LOCAL_WRITE | kNeedsLocalWrite)) != 0; }

void show(VerbsMr& region, const RegionRequest& request) {
  region.addr = request.address;
  region.length = request.length;
  region.start = request.start;
  region.access = request.access;
}

Result<std::unique_ptr<VerbsMr>> make_region(ibv_pd* pd) {
  if (pd == nullptr) return Error{EINVAL, "no protection domain"};
  auto& domain = object_of(pd);
  if (const int error = check_handle(domain); error != 0) {
    return Error{error, "the handle of the protection domain has been overwritten"};
  }
  auto region = std::make_unique<VerbsMr>(pd->context);
  region->domain = UseOf<VerbsPd>(domain);
  region->pd = pd;
  return region;
}

Status register_region(VerbsMr& region, const RegionRequest& request) {
  if (const int error = check_memory(request); error != 0) {
    return Error{error, "the memory is not mapped"};
  }
  auto added = table_of(region).add(region_attributes_of(region.domain.get()->domain, request));
  if (!added) return added.error();
  region.registration = added.value();
  show(region, request);
  region.lkey = region.rkey = static_cast<std::uint32_t>(added.value().key.v);
  return {};
}

// Memory windows are not offered.
ibv_mw* alloc_mw(ibv_pd*, ibv_mw_type) { return null_with(EOPNOTSUPP); }

int bind_mw(ibv_qp*, ibv_mw*, ibv_mw_bind*) { return status_with(EOPNOTSUPP); }

int dealloc_mw(ibv_mw*) { return status_with(EOPNOTSUPP); }

}  // namespace weft::verbs

extern "C" {

using weft::verbs::reg_mr;

ibv_mr* ibv_reg_mr(ibv_pd* pd, void* address, std::size_t length, int access) {
  const auto flags = static_cast<unsigned>(access);
  return reg_mr(pd, {address, length, weft::verbs::start_of(address, flags), flags});
}
ibv_mr* ibv_reg_mr_iova(ibv_pd* pd, void* address, std::size_t length, std::uint64_t iova,
                        int access) {
  return reg_mr(pd, {address, length, iova, static_cast<unsigned>(access)});
}
ibv_mr* ibv_reg_mr_iova2(ibv_pd* pd, void* address, std::size_t length, std::uint64_t iova,
                         unsigned access) {
  return reg_mr(pd, {address, length, iova, access});
}
int ibv_dereg_mr(ibv_mr* mr) { return weft::verbs::dereg_mr(mr); }
int ibv_rereg_mr(ibv_mr* mr, int flags, ibv_pd* pd, void* address, std::size_t length, int access) {
  return weft::verbs::rereg_mr(mr, {flags, pd, address, length, static_cast<unsigned>(access)});
}

// Memory of devices is not offered.
ibv_mr* ibv_reg_dmabuf_mr(ibv_pd*, std::uint64_t, std::size_t, std::uint64_t, int, int) {
  return weft::verbs::null_with(EOPNOTSUPP);
}

}  // extern "C"
