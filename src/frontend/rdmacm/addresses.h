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

}  // namespace weft::rdmacm
