// SPDX-License-Identifier: BSD-2-Clause
// How do event channels end? (rdma_destroy_event_channel(3))
#pragma once

#include <memory>

#include "cm_channel.h"

namespace weft::rdmacm {

// Ends the channel of a program, or of a synchronous id. Ids that are left keep it, and so do
// threads inside of rdma_get_cm_event(3). Some programs, as rping, have a thread that comes back
// afterwards, and then exit: the last 16 channels stay for those.
void retire(std::shared_ptr<CmChannel> channel);

}  // namespace weft::rdmacm
