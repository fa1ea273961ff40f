// SPDX-License-Identifier: BSD-2-Clause
// How does a queue pair join a multicast group? It does not: groups are not offered.
#include "abi.h"
#include "boundary.h"

using weft::verbs::status_with;

int ibv_attach_mcast(ibv_qp*, const ibv_gid*, std::uint16_t) { return status_with(EOPNOTSUPP); }

int ibv_detach_mcast(ibv_qp*, const ibv_gid*, std::uint16_t) { return status_with(EOPNOTSUPP); }
