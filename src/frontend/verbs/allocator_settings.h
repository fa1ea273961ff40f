// SPDX-License-Identifier: BSD-2-Clause
// How does the user want memory of regions to be allocated? ibv_exp_reg_mr(3), ENVIRONMENT
#pragma once

#include "base/options.h"
#include "shared_memory/region_memory.h"

namespace weft::verbs {

// Reads MLX_MR_ALLOC_TYPE, MLX_MR_MAX_LOG2_CONTIG_BSIZE and MLX_MR_MIN_LOG2_CONTIG_BSIZE. A value
// that makes no sense: a line for `warn`, and the default; both defaults where the minimum is above
// the maximum.
shared_memory::AllocatorSettings read_allocator_settings(const WarningSink& warn);

}  // namespace weft::verbs
