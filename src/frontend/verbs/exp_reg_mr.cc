// SPDX-License-Identifier: BSD-2-Clause
// Which memory do experimental verbs register? ibv_exp_reg_mr(3)
#include <cerrno>

#include "boundary.h"
#include "exp_access.h"
#include "exp_memory.h"
#include "mr.h"
#include "operations.h"

namespace weft::verbs {
namespace {

using shared_memory::AllocationType;

// create_flags and dm count only if comp_mask says so.
std::uint32_t create_flags_of(const ibv_exp_reg_mr_in& in) {
  return (in.comp_mask & IBV_EXP_REG_MR_CREATE_FLAGS) != 0 ? in.create_flags : 0;
}

bool is_contiguous(const ibv_exp_reg_mr_in& in) {
  return (create_flags_of(in) & IBV_EXP_REG_MR_CREATE_CONTIG) != 0;
}

bool allocates(const ibv_exp_reg_mr_in& in) {
  return (in.exp_access & IBV_EXP_ACCESS_ALLOCATE_MR) != 0 || is_contiguous(in);
}

// In the order of Mellanox's library, driver and kernel. shared_memory::allocate() checks the rest.
int check(const ibv_exp_reg_mr_in& in) {
  if (in.comp_mask >= IBV_EXP_REG_MR_RESERVED) return EINVAL;
  if ((create_flags_of(in) & ~std::uint32_t{IBV_EXP_REG_MR_CREATE_CONTIG}) != 0) return EINVAL;
  const bool anywhere = (in.exp_access & IBV_EXP_ACCESS_ALLOCATE_MR) != 0;
  if (anywhere && (in.addr != nullptr || is_contiguous(in))) return EINVAL;
  if (!allocates(in) && (in.exp_access & kGrants) != 0) return EINVAL;
  const bool physical = (in.exp_access & IBV_EXP_ACCESS_PHYSICAL_ADDR) != 0;
  if (physical && (in.addr != nullptr || in.length != 0)) return EINVAL;
  if ((in.exp_access & IBV_EXP_ACCESS_NO_RDMA) != 0) return EINVAL;
  const bool of_device = (in.comp_mask & IBV_EXP_REG_MR_DM) != 0 && in.dm != nullptr;
  return of_device ? EOPNOTSUPP : check_exp_access(in.exp_access);
}

// The variables say how. Contiguous memory at an address has no other way, unless it is to be
// shared and the variables want memory that cannot be.
shared_memory::Wish wish_of(const ibv_exp_reg_mr_in& in,
                            const shared_memory::AllocatorSettings& settings) {
  shared_memory::Wish wish;
  wish.length = in.length;
  wish.settings = settings;
  wish.at = in.addr;
  wish.grants = mode_of_grants(in.exp_access);
  const bool cannot_be = wish.grants != 0 && settings.type == AllocationType::kAnonymous;
  if (in.addr != nullptr && !cannot_be) wish.settings.type = AllocationType::kContiguous;
  return wish;
}

Status register_at(VerbsMr& region, void* address, const ibv_exp_reg_mr_in& in) {
  const auto start = reinterpret_cast<std::uint64_t>(address);
  return register_region(region, {address, in.length, start, plain_access(in.exp_access)});
}

Status allocate(VerbsMr& region, const ibv_exp_reg_mr_in& in) {
  auto memory = shared_memory::allocate(wish_of(in, VerbsContext::of(region.context).allocator()));
  if (!memory) return memory.error();
  if (Status ok = register_at(region, memory.value().base(), in); !ok) return ok;
  if ((in.exp_access & kGrants) != 0) region.call(memory.value().id());
  give_memory(region, std::move(memory).value());
  return {};
}

}  // namespace

ibv_mr* exp_reg_mr(ibv_exp_reg_mr_in* in) {
  return pointer_at_border([&]() -> Result<ibv_mr*> {
    if (const int error = check(*in); error != 0) return Error{error, "ibv_exp_reg_mr(3)"};
    auto region = make_region(in->pd);
    if (!region) return region.error();
    VerbsMr& made = *region.value();
    const Status ok = allocates(*in) ? allocate(made, *in) : register_at(made, in->addr, *in);
    if (!ok) return ok.error();
    return std::move(region).value().release();
  });
}

}  // namespace weft::verbs
