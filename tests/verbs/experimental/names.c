/* SPDX-License-Identifier: BSD-2-Clause */
/* Do programs in C compile that use the names of experimental verbs? names.h is their check. */
#include "names.h"

#include <string.h>

/* Each call, as a program of OFED makes it. */
struct ibv_mr* create(struct ibv_pd* pd, size_t length);
struct ibv_mr* create(struct ibv_pd* pd, size_t length) {
  struct ibv_exp_reg_mr_in in;
  memset(&in, 0, sizeof in);
  in.pd = pd;
  in.length = length;
  in.exp_access = IBV_EXP_ACCESS_LOCAL_WRITE | IBV_EXP_ACCESS_ALLOCATE_MR |
                  IBV_EXP_ACCESS_SHARED_MR_USER_READ | IBV_EXP_ACCESS_SHARED_MR_USER_WRITE;
  return ibv_exp_reg_mr(&in);
}

struct ibv_mr* attach(struct ibv_pd* pd, uint32_t handle);
struct ibv_mr* attach(struct ibv_pd* pd, uint32_t handle) {
  struct ibv_exp_reg_shared_mr_in in;
  memset(&in, 0, sizeof in);
  in.mr_handle = handle;
  in.pd = pd;
  in.exp_access = IBV_EXP_ACCESS_LOCAL_WRITE | IBV_EXP_ACCESS_NO_RDMA;
  return ibv_exp_reg_shared_mr(&in);
}

int can_share(struct ibv_context* context);
int can_share(struct ibv_context* context) {
  struct ibv_exp_device_attr attributes;
  attributes.comp_mask = IBV_EXP_DEVICE_ATTR_RESERVED - 1;
  if (ibv_exp_query_device(context, &attributes) != 0) return 0;
  return (attributes.exp_device_cap_flags & IBV_EXP_DEVICE_SHARED_MR) != 0;
}

int others(struct ibv_mr* mr, struct ibv_pd* pd);
int others(struct ibv_mr* mr, struct ibv_pd* pd) {
  struct ibv_exp_prefetch_attr prefetch;
  struct ibv_exp_rereg_mr_attr rereg;
  struct weft_exp_mr_memory memory;
  return ibv_exp_prefetch_mr(mr, &prefetch) +
         ibv_exp_rereg_mr(mr, IBV_EXP_REREG_MR_CHANGE_PD, pd, NULL, 0, 0, &rereg) +
         ibv_exp_setenv(mr->context, "MLX_MR_ALLOC_TYPE", "ALL", 1) +
         ibv_exp_use_priv_env(mr->context) + weft_exp_query_mr_memory(mr, &memory);
}
