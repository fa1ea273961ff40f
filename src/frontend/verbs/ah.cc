// SPDX-License-Identifier: BSD-2-Clause
// How are address handles made?
#include "abi.h"
#include "boundary.h"

using weft::verbs::null_with;
using weft::verbs::status_with;

ibv_ah* ibv_create_ah(ibv_pd*, ibv_ah_attr*) { return null_with(EOPNOTSUPP); }

ibv_ah* ibv_create_ah_from_wc(ibv_pd* pd, ibv_wc* wc, ibv_grh* grh, std::uint8_t port_num) {
  ibv_ah_attr attributes{};
  const int status = ibv_init_ah_from_wc(pd->context, port_num, wc, grh, &attributes);
  if (status != 0) return null_with(errno);
  return ibv_create_ah(pd, &attributes);
}

int ibv_destroy_ah(ibv_ah*) { return status_with(EOPNOTSUPP); }
