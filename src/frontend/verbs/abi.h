// SPDX-License-Identifier: BSD-2-Clause
// How does this module include libibverbs' header? Without the macros that wrap exported functions.
#pragma once

#include <infiniband/verbs.h>
#include <infiniband/verbs_exp.h>

#include <cstddef>
#include <cstdint>

// The header replaces calls of these functions, which this module defines, by inline functions.
#undef ibv_query_port
#undef ibv_reg_mr
#undef ibv_reg_mr_iova
