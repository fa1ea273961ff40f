// SPDX-License-Identifier: BSD-2-Clause
// How does a process attach to a region of another one? ibv_exp_reg_shared_mr(3)
#include <cerrno>

#include "boundary.h"
#include "exp_access.h"
#include "exp_memory.h"
#include "mr.h"
#include "operations.h"

namespace weft::verbs {
namespace {

// An attached region cannot be shared on.
int check(const ibv_exp_reg_shared_mr_in& in) {
  if (in.comp_mask >= IBV_EXP_REG_SHARED_MR_RESERVED) return EINVAL;
  if ((in.exp_access & (kGrants | IBV_EXP_ACCESS_ALLOCATE_MR)) != 0) return EINVAL;
  return check_exp_access(in.exp_access);
}

Status attach(VerbsMr& region, const ibv_exp_reg_shared_mr_in& in) {
  const unsigned access = plain_access(in.exp_access);
  auto memory = shared_memory::attach({in.mr_handle, writes(access), in.addr});
  if (!memory) return memory.error();
  void* const base = memory.value().base();
  const RegionRequest request{base, memory.value().length(), reinterpret_cast<std::uint64_t>(base),
                              access};
  if ((in.exp_access & IBV_EXP_ACCESS_NO_RDMA) != 0) {
    show(region, request);
    region.call(0);
  } else if (Status ok = register_region(region, request); !ok) {
    return ok;
  }
  give_memory(region, std::move(memory).value());
  return {};
}

}  // namespace

ibv_mr* exp_reg_shared_mr(ibv_exp_reg_shared_mr_in* in) {
  return pointer_at_border([&]() -> Result<ibv_mr*> {
    if (const int error = check(*in); error != 0) return Error{error, "ibv_exp_reg_shared_mr(3)"};
    auto region = make_region(in->pd);
    if (!region) return region.error();
    if (Status ok = attach(*region.value(), *in); !ok) return ok.error();
    return std::move(region).value().release();
  });
}

}  // namespace weft::verbs
