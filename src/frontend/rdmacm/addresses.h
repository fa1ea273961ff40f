// SPDX-License-Identifier: BSD-2-Clause
// How does an id get its addresses and its device?
#pragma once

#include "base/result.h"
#include "cm_id.h"

namespace weft::rdmacm {

// rdma_bind_addr(3). Errors: EINVAL for another family, an id that is bound, and IPoIB; EADDRINUSE,
// those of DeviceTable::find().
Status bind_address(CmId& id, const sockaddr* address);
// rdma_resolve_addr(3). Errors: EINVAL likewise; those of bind_address() for a source. Others are
// events.
Status resolve_addresses(CmId& id, const sockaddr* from, const sockaddr* to);
// rdma_resolve_route(3), and path records of the program, which say nothing new: the path of RoCE
// is the one that the addresses name. Errors: EINVAL for an id without a resolved address.
Status resolve_path(CmId& id);

}  // namespace weft::rdmacm
