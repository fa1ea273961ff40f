// SPDX-License-Identifier: BSD-2-Clause
// Which attributes does a transition of a queue pair need, and which may it set? (IBTA table 91)
#pragma once

#include <cstdint>

#include "base/result.h"
#include "queue/attributes.h"

namespace weft::queue {

// May a queue pair of that type go from one state to the other, where exactly the attributes of
// `mask` are given? Error: EINVAL, with the transition and the attributes that are missing or
// forbidden.
Status check_transition(QpType type, QpState from, QpState to, std::uint32_t mask);

const char* name_of(QpState state);

}  // namespace weft::queue
