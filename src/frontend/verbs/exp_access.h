// SPDX-License-Identifier: BSD-2-Clause
// What do the access flags of experimental verbs mean? (enum ibv_exp_access_flags)
#pragma once

#include <cstdint>

#include "abi.h"

namespace weft::verbs {

// Which users may attach to a region.
inline constexpr std::uint64_t kGrants =
    IBV_EXP_ACCESS_SHARED_MR_USER_READ | IBV_EXP_ACCESS_SHARED_MR_USER_WRITE |
    IBV_EXP_ACCESS_SHARED_MR_GROUP_READ | IBV_EXP_ACCESS_SHARED_MR_GROUP_WRITE |
    IBV_EXP_ACCESS_SHARED_MR_OTHER_READ | IBV_EXP_ACCESS_SHARED_MR_OTHER_WRITE;

// An errno value or 0: EINVAL for flags that are not known, and for rights that may not be given
// together; EOPNOTSUPP for PHYSICAL_ADDR and TUNNELED_ATOMIC, which Weft does not have.
int check_exp_access(std::uint64_t access);

// The flags of ibv_reg_mr(3) that mean the same. RELAXED and MW_ZERO_BASED have no effect.
unsigned plain_access(std::uint64_t access);

// The mode of a file with the same grants (chmod(2)).
unsigned mode_of_grants(std::uint64_t access);

}  // namespace weft::verbs
