// SPDX-License-Identifier: BSD-2-Clause
// What do drivers of libibverbs find here? The functions of its private interface, which do
// nothing.
//
// perftest, UCX and libfabric link libmlx5 or libefa, which do not load without these symbols of
// version IBVERBS_PRIVATE_34. At load the two call verbs_register_driver_34(); nothing else is
// called for a device that is not theirs. Declared in no installed header.
#include <cstdint>

#include "abi.h"
#include "boundary.h"

// NOLINTBEGIN(readability-identifier-naming): the names are those of rdma-core.
extern "C" {

// Whether objects may be destroyed after their device has gone.
bool verbs_allow_disassociate_destroy = false;

void verbs_register_driver_34(const void*) {}

void __verbs_log(void*, std::uint32_t, const char*, ...) {}

ibv_context* verbs_open_device(ibv_device* device, void*) { return ibv_open_device(device); }

void* _verbs_init_and_alloc_context(ibv_device*, int, std::size_t, void*, std::uint32_t) {
  return weft::verbs::null_with(EOPNOTSUPP);
}

void verbs_uninit_context(void*) {}

void verbs_set_ops(void*, const void*) {}

void verbs_init_cq(ibv_cq*, ibv_context*, ibv_comp_channel*, void*) {}

unsigned __ioctl_final_num_attrs(unsigned attributes, void*) { return attributes; }

int ibv_read_ibdev_sysfs_file(char*, std::size_t, void*, const char*, ...) {
  return weft::verbs::minus_one_with(EOPNOTSUPP);
}

// Commands to a kernel module that is not there.
int execute_ioctl(ibv_context*, void*) { return weft::verbs::status_with(EOPNOTSUPP); }

int ibv_cmd_advise_mr(ibv_context*, void*) __attribute__((alias("execute_ioctl")));
int ibv_cmd_alloc_dm(ibv_context*, void*) __attribute__((alias("execute_ioctl")));
int ibv_cmd_alloc_mw(ibv_context*, void*) __attribute__((alias("execute_ioctl")));
int ibv_cmd_alloc_pd(ibv_context*, void*) __attribute__((alias("execute_ioctl")));
int ibv_cmd_attach_mcast(ibv_context*, void*) __attribute__((alias("execute_ioctl")));
int ibv_cmd_close_xrcd(ibv_context*, void*) __attribute__((alias("execute_ioctl")));
int ibv_cmd_create_ah(ibv_context*, void*) __attribute__((alias("execute_ioctl")));
int ibv_cmd_create_counters(ibv_context*, void*) __attribute__((alias("execute_ioctl")));
int ibv_cmd_create_cq(ibv_context*, void*) __attribute__((alias("execute_ioctl")));
int ibv_cmd_create_cq_ex(ibv_context*, void*) __attribute__((alias("execute_ioctl")));
int ibv_cmd_create_flow(ibv_context*, void*) __attribute__((alias("execute_ioctl")));
int ibv_cmd_create_flow_action_esp(ibv_context*, void*) __attribute__((alias("execute_ioctl")));
int ibv_cmd_create_qp(ibv_context*, void*) __attribute__((alias("execute_ioctl")));
int ibv_cmd_create_qp_ex(ibv_context*, void*) __attribute__((alias("execute_ioctl")));
int ibv_cmd_create_qp_ex2(ibv_context*, void*) __attribute__((alias("execute_ioctl")));
int ibv_cmd_create_rwq_ind_table(ibv_context*, void*) __attribute__((alias("execute_ioctl")));
int ibv_cmd_create_srq(ibv_context*, void*) __attribute__((alias("execute_ioctl")));
int ibv_cmd_create_srq_ex(ibv_context*, void*) __attribute__((alias("execute_ioctl")));
int ibv_cmd_create_wq(ibv_context*, void*) __attribute__((alias("execute_ioctl")));
int ibv_cmd_dealloc_mw(ibv_context*, void*) __attribute__((alias("execute_ioctl")));
int ibv_cmd_dealloc_pd(ibv_context*, void*) __attribute__((alias("execute_ioctl")));
int ibv_cmd_dereg_mr(ibv_context*, void*) __attribute__((alias("execute_ioctl")));
int ibv_cmd_destroy_ah(ibv_context*, void*) __attribute__((alias("execute_ioctl")));
int ibv_cmd_destroy_counters(ibv_context*, void*) __attribute__((alias("execute_ioctl")));
int ibv_cmd_destroy_cq(ibv_context*, void*) __attribute__((alias("execute_ioctl")));
int ibv_cmd_destroy_flow(ibv_context*, void*) __attribute__((alias("execute_ioctl")));
int ibv_cmd_destroy_flow_action(ibv_context*, void*) __attribute__((alias("execute_ioctl")));
int ibv_cmd_destroy_qp(ibv_context*, void*) __attribute__((alias("execute_ioctl")));
int ibv_cmd_destroy_rwq_ind_table(ibv_context*, void*) __attribute__((alias("execute_ioctl")));
int ibv_cmd_destroy_srq(ibv_context*, void*) __attribute__((alias("execute_ioctl")));
int ibv_cmd_destroy_wq(ibv_context*, void*) __attribute__((alias("execute_ioctl")));
int ibv_cmd_detach_mcast(ibv_context*, void*) __attribute__((alias("execute_ioctl")));
int ibv_cmd_free_dm(ibv_context*, void*) __attribute__((alias("execute_ioctl")));
int ibv_cmd_get_context(ibv_context*, void*) __attribute__((alias("execute_ioctl")));
int ibv_cmd_modify_cq(ibv_context*, void*) __attribute__((alias("execute_ioctl")));
int ibv_cmd_modify_flow_action_esp(ibv_context*, void*) __attribute__((alias("execute_ioctl")));
int ibv_cmd_modify_qp(ibv_context*, void*) __attribute__((alias("execute_ioctl")));
int ibv_cmd_modify_qp_ex(ibv_context*, void*) __attribute__((alias("execute_ioctl")));
int ibv_cmd_modify_srq(ibv_context*, void*) __attribute__((alias("execute_ioctl")));
int ibv_cmd_modify_wq(ibv_context*, void*) __attribute__((alias("execute_ioctl")));
int ibv_cmd_open_qp(ibv_context*, void*) __attribute__((alias("execute_ioctl")));
int ibv_cmd_open_xrcd(ibv_context*, void*) __attribute__((alias("execute_ioctl")));
int ibv_cmd_poll_cq(ibv_context*, void*) __attribute__((alias("execute_ioctl")));
int ibv_cmd_post_recv(ibv_context*, void*) __attribute__((alias("execute_ioctl")));
int ibv_cmd_post_send(ibv_context*, void*) __attribute__((alias("execute_ioctl")));
int ibv_cmd_post_srq_recv(ibv_context*, void*) __attribute__((alias("execute_ioctl")));
int ibv_cmd_query_context(ibv_context*, void*) __attribute__((alias("execute_ioctl")));
int ibv_cmd_query_device_any(ibv_context*, void*) __attribute__((alias("execute_ioctl")));
int ibv_cmd_query_mr(ibv_context*, void*) __attribute__((alias("execute_ioctl")));
int ibv_cmd_query_port(ibv_context*, void*) __attribute__((alias("execute_ioctl")));
int ibv_cmd_query_qp(ibv_context*, void*) __attribute__((alias("execute_ioctl")));
int ibv_cmd_query_srq(ibv_context*, void*) __attribute__((alias("execute_ioctl")));
int ibv_cmd_read_counters(ibv_context*, void*) __attribute__((alias("execute_ioctl")));
int ibv_cmd_reg_dm_mr(ibv_context*, void*) __attribute__((alias("execute_ioctl")));
int ibv_cmd_reg_dmabuf_mr(ibv_context*, void*) __attribute__((alias("execute_ioctl")));
int ibv_cmd_reg_mr(ibv_context*, void*) __attribute__((alias("execute_ioctl")));
int ibv_cmd_req_notify_cq(ibv_context*, void*) __attribute__((alias("execute_ioctl")));
int ibv_cmd_rereg_mr(ibv_context*, void*) __attribute__((alias("execute_ioctl")));
int ibv_cmd_resize_cq(ibv_context*, void*) __attribute__((alias("execute_ioctl")));

}  // extern "C"
// NOLINTEND(readability-identifier-naming)
