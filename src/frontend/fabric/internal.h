// SPDX-License-Identifier: BSD-2-Clause
// How do the parts of the front end open each other's objects?
//
// Each function takes the arguments of the libfabric call that it stands behind, checked for null,
// and returns 0 or a negative fabric errno. None of them lets an exception out.
#pragma once

#include <rdma/fabric.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_eq.h>

namespace weft::fabric {

class Fabric;

// fi_domain(3): opens the domain that `info` describes. `*domain` belongs to the caller.
// Errors: -FI_EINVAL for an info that no getinfo of this provider gave, -FI_ENOMEM.
int open_domain(Fabric& fabric, fi_info* info, fid_domain** domain, void* context);

// fi_passive_ep(3): `info` says which address; it is copied. Errors: -FI_EINVAL for an info of
// another type of endpoint, -FI_EADDRINUSE and others of bind(2).
int open_passive_endpoint(Fabric& fabric, fi_info* info, fid_pep** pep, void* context);

// fi_eq_open(3). `attributes` may be null: all defaults.
int open_eq(Fabric& fabric, fi_eq_attr* attributes, fid_eq** eq, void* context);

// fi_wait_open(3). `attributes` may be null: all defaults.
int open_wait_set(Fabric& fabric, fi_wait_attr* attributes, fid_wait** set);

// fi_trywait(3): 0 when a thread may block on the wait objects of all `count` objects, -FI_EAGAIN
// when there is something to read first.
int try_wait(Fabric& fabric, fid** fids, int count);

}  // namespace weft::fabric
