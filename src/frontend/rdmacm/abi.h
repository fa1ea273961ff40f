// SPDX-License-Identifier: BSD-2-Clause
// Which headers of the distribution declare what this library implements?
#pragma once

#include <infiniband/verbs.h>
#include <rdma/rdma_cma.h>
#include <rdma/rdma_verbs.h>
