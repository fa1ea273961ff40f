// SPDX-License-Identifier: BSD-2-Clause
// How are completions polled? ibv_poll_cq(3), ibv_start_poll(3)
#pragma once

#include "objects.h"

namespace weft::verbs {

// Fills the functions of an extended queue that was asked for these fields (wc_flags).
void fill_poll_functions(VerbsCq& queue, std::uint64_t reads);

}  // namespace weft::verbs
