// SPDX-License-Identifier: BSD-2-Clause
// What do programs find that were linked before 2007? The versions of that time, which refuse.
//
// The structures of libibverbs 1.0 have another layout. Its functions exist here so that the
// version node has all its names; a program that calls them hears that there is no device.
#include "abi.h"
#include "boundary.h"

extern "C" {

ibv_device** weft_old_list(int* count) {
  if (count != nullptr) *count = 0;
  return weft::verbs::null_with(EOPNOTSUPP);
}

void* weft_old_pointer() { return weft::verbs::null_with(EOPNOTSUPP); }

int weft_old_status() { return weft::verbs::status_with(EOPNOTSUPP); }

int weft_old_query() { return weft::verbs::minus_one_with(EOPNOTSUPP); }

std::uint64_t weft_old_guid() { return 0; }

void weft_old_nothing() {}

}  // extern "C"

// clang has no attribute for this.
asm(".symver weft_old_list, ibv_get_device_list@IBVERBS_1.0");
asm(".symver weft_old_pointer, ibv_alloc_pd@IBVERBS_1.0");
asm(".symver weft_old_pointer, ibv_create_ah@IBVERBS_1.0");
asm(".symver weft_old_pointer, ibv_create_cq@IBVERBS_1.0");
asm(".symver weft_old_pointer, ibv_create_qp@IBVERBS_1.0");
asm(".symver weft_old_pointer, ibv_create_srq@IBVERBS_1.0");
asm(".symver weft_old_pointer, ibv_get_device_name@IBVERBS_1.0");
asm(".symver weft_old_pointer, ibv_open_device@IBVERBS_1.0");
asm(".symver weft_old_pointer, ibv_reg_mr@IBVERBS_1.0");
asm(".symver weft_old_status, ibv_attach_mcast@IBVERBS_1.0");
asm(".symver weft_old_status, ibv_close_device@IBVERBS_1.0");
asm(".symver weft_old_status, ibv_dealloc_pd@IBVERBS_1.0");
asm(".symver weft_old_status, ibv_dereg_mr@IBVERBS_1.0");
asm(".symver weft_old_status, ibv_destroy_ah@IBVERBS_1.0");
asm(".symver weft_old_status, ibv_destroy_cq@IBVERBS_1.0");
asm(".symver weft_old_status, ibv_destroy_qp@IBVERBS_1.0");
asm(".symver weft_old_status, ibv_destroy_srq@IBVERBS_1.0");
asm(".symver weft_old_status, ibv_detach_mcast@IBVERBS_1.0");
asm(".symver weft_old_status, ibv_modify_qp@IBVERBS_1.0");
asm(".symver weft_old_status, ibv_modify_srq@IBVERBS_1.0");
asm(".symver weft_old_status, ibv_query_device@IBVERBS_1.0");
asm(".symver weft_old_status, ibv_query_port@IBVERBS_1.0");
asm(".symver weft_old_status, ibv_query_qp@IBVERBS_1.0");
asm(".symver weft_old_status, ibv_query_srq@IBVERBS_1.0");
asm(".symver weft_old_status, ibv_resize_cq@IBVERBS_1.0");
asm(".symver weft_old_query, ibv_get_async_event@IBVERBS_1.0");
asm(".symver weft_old_query, ibv_get_cq_event@IBVERBS_1.0");
asm(".symver weft_old_query, ibv_query_gid@IBVERBS_1.0");
asm(".symver weft_old_query, ibv_query_pkey@IBVERBS_1.0");
asm(".symver weft_old_guid, ibv_get_device_guid@IBVERBS_1.0");
asm(".symver weft_old_nothing, ibv_ack_async_event@IBVERBS_1.0");
asm(".symver weft_old_nothing, ibv_ack_cq_events@IBVERBS_1.0");
asm(".symver weft_old_nothing, ibv_free_device_list@IBVERBS_1.0");
asm(".symver weft_old_nothing, ibv_register_driver@IBVERBS_1.1");
