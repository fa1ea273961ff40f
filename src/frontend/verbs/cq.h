// SPDX-License-Identifier: BSD-2-Clause
// Functions of completion queues that programs reach through the context.
#pragma once

#include "objects.h"

namespace weft::verbs {

ibv_cq_ex* create_cq_ex(ibv_context* context, ibv_cq_init_attr_ex* wanted);
int modify_cq(ibv_cq* cq, ibv_modify_cq_attr* wanted);
int req_notify_cq(ibv_cq* cq, int solicited_only);

// Polls and waits of that queue drive the port from now on, or not any more. Counted: for each
// queue pair that reports there.
Status drive(VerbsCq& queue, queue::QpPort& port);
void stop_driving(VerbsCq& queue, queue::QpPort& port);

}  // namespace weft::verbs
