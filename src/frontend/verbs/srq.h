// SPDX-License-Identifier: BSD-2-Clause
// Functions of shared receive queues that programs reach through the context.
#pragma once

#include "objects.h"

namespace weft::verbs {

ibv_srq* create_srq_ex(ibv_context* context, ibv_srq_init_attr_ex* wanted);
int get_srq_num(ibv_srq* srq, std::uint32_t* number);
ibv_xrcd* open_xrcd(ibv_context* context, ibv_xrcd_init_attr* wanted);
int close_xrcd(ibv_xrcd* domain);

}  // namespace weft::verbs
