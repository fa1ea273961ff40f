// SPDX-License-Identifier: BSD-2-Clause
// How is memory registered?
#include "abi.h"
#include "boundary.h"
#include "operations.h"

namespace weft::verbs {

// Memory windows are not offered.
ibv_mw* alloc_mw(ibv_pd*, ibv_mw_type) { return null_with(EOPNOTSUPP); }

int bind_mw(ibv_qp*, ibv_mw*, ibv_mw_bind*) { return status_with(EOPNOTSUPP); }

int dealloc_mw(ibv_mw*) { return status_with(EOPNOTSUPP); }

int advise_mr(ibv_pd*, ibv_advise_mr_advice, std::uint32_t, ibv_sge*, std::uint32_t) {
  return status_with(EOPNOTSUPP);
}

}  // namespace weft::verbs

using weft::verbs::null_with;
using weft::verbs::status_with;

ibv_mr* ibv_reg_mr(ibv_pd*, void*, std::size_t, int) { return null_with(EOPNOTSUPP); }

ibv_mr* ibv_reg_mr_iova(ibv_pd*, void*, std::size_t, std::uint64_t, int) {
  return null_with(EOPNOTSUPP);
}

ibv_mr* ibv_reg_mr_iova2(ibv_pd*, void*, std::size_t, std::uint64_t, unsigned) {
  return null_with(EOPNOTSUPP);
}

// Memory of devices is not offered.
ibv_mr* ibv_reg_dmabuf_mr(ibv_pd*, std::uint64_t, std::size_t, std::uint64_t, int, int) {
  return null_with(EOPNOTSUPP);
}

int ibv_rereg_mr(ibv_mr*, int, ibv_pd*, void*, std::size_t, int) {
  errno = EOPNOTSUPP;
  return IBV_REREG_MR_ERR_INPUT;
}

int ibv_dereg_mr(ibv_mr*) { return status_with(EOPNOTSUPP); }
