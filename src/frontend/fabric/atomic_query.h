// SPDX-License-Identifier: BSD-2-Clause
// Which atomic operations does weft offer, and what do libfabric's words for them mean?
// fi_atomic(3)
#pragma once

#include <rdma/fi_atomic.h>
#include <rdma/fi_endpoint.h>

#include "base/atomic_op.h"
#include "base/result.h"

namespace weft::fabric {

// What the numbers of an fi_datatype and an fi_op ask for in a call of that form. Errors:
// FI_EOPNOTSUPP for what means nothing, and what has no such form.
Result<AtomicAction> action_of(AtomicForm form, int type, int op);

// fi_query_atomic(3), without a need for its domain. Errors: -FI_EOPNOTSUPP, also for FI_TAGGED,
// -FI_EBADFLAGS, -FI_EINVAL.
int query_atomic(const fi_datatype& type, const fi_op& op, fi_atomic_attr* attributes,
                 std::uint64_t flags);

// How many elements such a call may have. Errors: -FI_EOPNOTSUPP, -FI_EINVAL.
int check_atomic(AtomicForm form, const fi_datatype& type, const fi_op& op, std::size_t* count);

// fi_atomicvalid(3), fi_fetch_atomicvalid(3), fi_compare_atomicvalid(3).
template <AtomicForm kForm>
int atomic_valid(fid_ep*, fi_datatype type, fi_op op, std::size_t* count) {
  return check_atomic(kForm, type, op, count);
}

}  // namespace weft::fabric
