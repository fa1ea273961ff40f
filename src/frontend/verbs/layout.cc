// SPDX-License-Identifier: BSD-2-Clause
// Is every structure that programs share with this library as in rdma-core 44 on x86-64?
//
// The numbers were measured with Debian's headers. Programs have them compiled in.
#include "abi.h"

static_assert(sizeof(ibv_device) == 664);
static_assert(offsetof(ibv_device, _ops) == 0);
static_assert(offsetof(ibv_device, node_type) == 16);
static_assert(offsetof(ibv_device, transport_type) == 20);
static_assert(offsetof(ibv_device, name) == 24);
static_assert(offsetof(ibv_device, dev_name) == 88);
static_assert(offsetof(ibv_device, dev_path) == 152);
static_assert(offsetof(ibv_device, ibdev_path) == 408);

static_assert(sizeof(ibv_context) == 328);
static_assert(offsetof(ibv_context, device) == 0);
static_assert(offsetof(ibv_context, ops) == 8);
static_assert(offsetof(ibv_context, cmd_fd) == 264);
static_assert(offsetof(ibv_context, async_fd) == 268);
static_assert(offsetof(ibv_context, num_comp_vectors) == 272);
static_assert(offsetof(ibv_context, mutex) == 280);
static_assert(offsetof(ibv_context, abi_compat) == 320);

static_assert(sizeof(ibv_context_ops) == 256);
static_assert(offsetof(ibv_context_ops, _compat_query_device) == 0);
static_assert(offsetof(ibv_context_ops, _compat_query_port) == 8);
static_assert(offsetof(ibv_context_ops, alloc_mw) == 56);
static_assert(offsetof(ibv_context_ops, bind_mw) == 64);
static_assert(offsetof(ibv_context_ops, dealloc_mw) == 72);
static_assert(offsetof(ibv_context_ops, poll_cq) == 88);
static_assert(offsetof(ibv_context_ops, req_notify_cq) == 96);
static_assert(offsetof(ibv_context_ops, post_srq_recv) == 160);
static_assert(offsetof(ibv_context_ops, post_send) == 200);
static_assert(offsetof(ibv_context_ops, post_recv) == 208);

static_assert(sizeof(verbs_context) == 648);
static_assert(offsetof(verbs_context, query_port) == 0);
static_assert(offsetof(verbs_context, advise_mr) == 8);
static_assert(offsetof(verbs_context, alloc_null_mr) == 16);
static_assert(offsetof(verbs_context, read_counters) == 24);
static_assert(offsetof(verbs_context, attach_counters_point_flow) == 32);
static_assert(offsetof(verbs_context, create_counters) == 40);
static_assert(offsetof(verbs_context, destroy_counters) == 48);
static_assert(offsetof(verbs_context, reg_dm_mr) == 56);
static_assert(offsetof(verbs_context, alloc_dm) == 64);
static_assert(offsetof(verbs_context, free_dm) == 72);
static_assert(offsetof(verbs_context, modify_flow_action_esp) == 80);
static_assert(offsetof(verbs_context, destroy_flow_action) == 88);
static_assert(offsetof(verbs_context, create_flow_action_esp) == 96);
static_assert(offsetof(verbs_context, modify_qp_rate_limit) == 104);
static_assert(offsetof(verbs_context, alloc_parent_domain) == 112);
static_assert(offsetof(verbs_context, dealloc_td) == 120);
static_assert(offsetof(verbs_context, alloc_td) == 128);
static_assert(offsetof(verbs_context, modify_cq) == 136);
static_assert(offsetof(verbs_context, post_srq_ops) == 144);
static_assert(offsetof(verbs_context, destroy_rwq_ind_table) == 152);
static_assert(offsetof(verbs_context, create_rwq_ind_table) == 160);
static_assert(offsetof(verbs_context, destroy_wq) == 168);
static_assert(offsetof(verbs_context, modify_wq) == 176);
static_assert(offsetof(verbs_context, create_wq) == 184);
static_assert(offsetof(verbs_context, query_rt_values) == 192);
static_assert(offsetof(verbs_context, create_cq_ex) == 200);
static_assert(offsetof(verbs_context, priv) == 208);
static_assert(offsetof(verbs_context, query_device_ex) == 216);
static_assert(offsetof(verbs_context, ibv_destroy_flow) == 224);
static_assert(offsetof(verbs_context, ABI_placeholder2) == 232);
static_assert(offsetof(verbs_context, ibv_create_flow) == 240);
static_assert(offsetof(verbs_context, ABI_placeholder1) == 248);
static_assert(offsetof(verbs_context, open_qp) == 256);
static_assert(offsetof(verbs_context, create_qp_ex) == 264);
static_assert(offsetof(verbs_context, get_srq_num) == 272);
static_assert(offsetof(verbs_context, create_srq_ex) == 280);
static_assert(offsetof(verbs_context, open_xrcd) == 288);
static_assert(offsetof(verbs_context, close_xrcd) == 296);
static_assert(offsetof(verbs_context, _ABI_placeholder3) == 304);
static_assert(offsetof(verbs_context, sz) == 312);
static_assert(offsetof(verbs_context, context) == 320);

static_assert(sizeof(ibv_pd) == 16);
static_assert(offsetof(ibv_pd, context) == 0);
static_assert(offsetof(ibv_pd, handle) == 8);

static_assert(sizeof(ibv_mr) == 48);
static_assert(offsetof(ibv_mr, context) == 0);
static_assert(offsetof(ibv_mr, pd) == 8);
static_assert(offsetof(ibv_mr, addr) == 16);
static_assert(offsetof(ibv_mr, length) == 24);
static_assert(offsetof(ibv_mr, handle) == 32);
static_assert(offsetof(ibv_mr, lkey) == 36);
static_assert(offsetof(ibv_mr, rkey) == 40);

static_assert(sizeof(ibv_mw) == 32);
static_assert(offsetof(ibv_mw, context) == 0);
static_assert(offsetof(ibv_mw, pd) == 8);
static_assert(offsetof(ibv_mw, rkey) == 16);
static_assert(offsetof(ibv_mw, handle) == 20);
static_assert(offsetof(ibv_mw, type) == 24);

static_assert(sizeof(ibv_comp_channel) == 16);
static_assert(offsetof(ibv_comp_channel, context) == 0);
static_assert(offsetof(ibv_comp_channel, fd) == 8);
static_assert(offsetof(ibv_comp_channel, refcnt) == 12);

static_assert(sizeof(ibv_cq) == 128);
static_assert(offsetof(ibv_cq, context) == 0);
static_assert(offsetof(ibv_cq, channel) == 8);
static_assert(offsetof(ibv_cq, cq_context) == 16);
static_assert(offsetof(ibv_cq, handle) == 24);
static_assert(offsetof(ibv_cq, cqe) == 28);
static_assert(offsetof(ibv_cq, mutex) == 32);
static_assert(offsetof(ibv_cq, cond) == 72);
static_assert(offsetof(ibv_cq, comp_events_completed) == 120);
static_assert(offsetof(ibv_cq, async_events_completed) == 124);

static_assert(sizeof(ibv_cq_ex) == 288);
static_assert(offsetof(ibv_cq_ex, context) == 0);
static_assert(offsetof(ibv_cq_ex, channel) == 8);
static_assert(offsetof(ibv_cq_ex, cq_context) == 16);
static_assert(offsetof(ibv_cq_ex, handle) == 24);
static_assert(offsetof(ibv_cq_ex, cqe) == 28);
static_assert(offsetof(ibv_cq_ex, mutex) == 32);
static_assert(offsetof(ibv_cq_ex, cond) == 72);
static_assert(offsetof(ibv_cq_ex, comp_events_completed) == 120);
static_assert(offsetof(ibv_cq_ex, async_events_completed) == 124);
static_assert(offsetof(ibv_cq_ex, comp_mask) == 128);
static_assert(offsetof(ibv_cq_ex, status) == 132);
static_assert(offsetof(ibv_cq_ex, wr_id) == 136);
static_assert(offsetof(ibv_cq_ex, start_poll) == 144);
static_assert(offsetof(ibv_cq_ex, next_poll) == 152);
static_assert(offsetof(ibv_cq_ex, end_poll) == 160);
static_assert(offsetof(ibv_cq_ex, read_opcode) == 168);
static_assert(offsetof(ibv_cq_ex, read_vendor_err) == 176);
static_assert(offsetof(ibv_cq_ex, read_byte_len) == 184);
static_assert(offsetof(ibv_cq_ex, read_imm_data) == 192);
static_assert(offsetof(ibv_cq_ex, read_qp_num) == 200);
static_assert(offsetof(ibv_cq_ex, read_src_qp) == 208);
static_assert(offsetof(ibv_cq_ex, read_wc_flags) == 216);
static_assert(offsetof(ibv_cq_ex, read_slid) == 224);
static_assert(offsetof(ibv_cq_ex, read_sl) == 232);
static_assert(offsetof(ibv_cq_ex, read_dlid_path_bits) == 240);
static_assert(offsetof(ibv_cq_ex, read_completion_ts) == 248);
static_assert(offsetof(ibv_cq_ex, read_cvlan) == 256);
static_assert(offsetof(ibv_cq_ex, read_flow_tag) == 264);
static_assert(offsetof(ibv_cq_ex, read_tm_info) == 272);
static_assert(offsetof(ibv_cq_ex, read_completion_wallclock_ns) == 280);

static_assert(sizeof(ibv_srq) == 128);
static_assert(offsetof(ibv_srq, context) == 0);
static_assert(offsetof(ibv_srq, srq_context) == 8);
static_assert(offsetof(ibv_srq, pd) == 16);
static_assert(offsetof(ibv_srq, handle) == 24);
static_assert(offsetof(ibv_srq, mutex) == 32);
static_assert(offsetof(ibv_srq, cond) == 72);
static_assert(offsetof(ibv_srq, events_completed) == 120);

static_assert(sizeof(ibv_qp) == 160);
static_assert(offsetof(ibv_qp, context) == 0);
static_assert(offsetof(ibv_qp, qp_context) == 8);
static_assert(offsetof(ibv_qp, pd) == 16);
static_assert(offsetof(ibv_qp, send_cq) == 24);
static_assert(offsetof(ibv_qp, recv_cq) == 32);
static_assert(offsetof(ibv_qp, srq) == 40);
static_assert(offsetof(ibv_qp, handle) == 48);
static_assert(offsetof(ibv_qp, qp_num) == 52);
static_assert(offsetof(ibv_qp, state) == 56);
static_assert(offsetof(ibv_qp, qp_type) == 60);
static_assert(offsetof(ibv_qp, mutex) == 64);
static_assert(offsetof(ibv_qp, cond) == 104);
static_assert(offsetof(ibv_qp, events_completed) == 152);

static_assert(sizeof(ibv_qp_ex) == 352);
static_assert(offsetof(ibv_qp_ex, qp_base) == 0);
static_assert(offsetof(ibv_qp_ex, comp_mask) == 160);
static_assert(offsetof(ibv_qp_ex, wr_id) == 168);
static_assert(offsetof(ibv_qp_ex, wr_flags) == 176);
static_assert(offsetof(ibv_qp_ex, wr_atomic_cmp_swp) == 184);
static_assert(offsetof(ibv_qp_ex, wr_atomic_fetch_add) == 192);
static_assert(offsetof(ibv_qp_ex, wr_bind_mw) == 200);
static_assert(offsetof(ibv_qp_ex, wr_local_inv) == 208);
static_assert(offsetof(ibv_qp_ex, wr_rdma_read) == 216);
static_assert(offsetof(ibv_qp_ex, wr_rdma_write) == 224);
static_assert(offsetof(ibv_qp_ex, wr_rdma_write_imm) == 232);
static_assert(offsetof(ibv_qp_ex, wr_send) == 240);
static_assert(offsetof(ibv_qp_ex, wr_send_imm) == 248);
static_assert(offsetof(ibv_qp_ex, wr_send_inv) == 256);
static_assert(offsetof(ibv_qp_ex, wr_send_tso) == 264);
static_assert(offsetof(ibv_qp_ex, wr_set_ud_addr) == 272);
static_assert(offsetof(ibv_qp_ex, wr_set_xrc_srqn) == 280);
static_assert(offsetof(ibv_qp_ex, wr_set_inline_data) == 288);
static_assert(offsetof(ibv_qp_ex, wr_set_inline_data_list) == 296);
static_assert(offsetof(ibv_qp_ex, wr_set_sge) == 304);
static_assert(offsetof(ibv_qp_ex, wr_set_sge_list) == 312);
static_assert(offsetof(ibv_qp_ex, wr_start) == 320);
static_assert(offsetof(ibv_qp_ex, wr_complete) == 328);
static_assert(offsetof(ibv_qp_ex, wr_abort) == 336);
static_assert(offsetof(ibv_qp_ex, wr_atomic_write) == 344);

static_assert(sizeof(ibv_ah) == 24);
static_assert(offsetof(ibv_ah, context) == 0);
static_assert(offsetof(ibv_ah, pd) == 8);
static_assert(offsetof(ibv_ah, handle) == 16);

static_assert(sizeof(ibv_xrcd) == 8);
static_assert(offsetof(ibv_xrcd, context) == 0);

static_assert(sizeof(ibv_port_attr) == 52);
static_assert(offsetof(ibv_port_attr, state) == 0);
static_assert(offsetof(ibv_port_attr, max_mtu) == 4);
static_assert(offsetof(ibv_port_attr, active_mtu) == 8);
static_assert(offsetof(ibv_port_attr, gid_tbl_len) == 12);
static_assert(offsetof(ibv_port_attr, port_cap_flags) == 16);
static_assert(offsetof(ibv_port_attr, max_msg_sz) == 20);
static_assert(offsetof(ibv_port_attr, pkey_tbl_len) == 32);
static_assert(offsetof(ibv_port_attr, lid) == 34);
static_assert(offsetof(ibv_port_attr, lmc) == 38);
static_assert(offsetof(ibv_port_attr, max_vl_num) == 39);
static_assert(offsetof(ibv_port_attr, sm_sl) == 40);
static_assert(offsetof(ibv_port_attr, subnet_timeout) == 41);
static_assert(offsetof(ibv_port_attr, active_width) == 43);
static_assert(offsetof(ibv_port_attr, active_speed) == 44);
static_assert(offsetof(ibv_port_attr, phys_state) == 45);
static_assert(offsetof(ibv_port_attr, link_layer) == 46);
static_assert(offsetof(ibv_port_attr, flags) == 47);
static_assert(offsetof(ibv_port_attr, port_cap_flags2) == 48);

static_assert(sizeof(ibv_device_attr) == 232);
static_assert(offsetof(ibv_device_attr, fw_ver) == 0);
static_assert(offsetof(ibv_device_attr, node_guid) == 64);
static_assert(offsetof(ibv_device_attr, sys_image_guid) == 72);
static_assert(offsetof(ibv_device_attr, max_mr_size) == 80);
static_assert(offsetof(ibv_device_attr, page_size_cap) == 88);
static_assert(offsetof(ibv_device_attr, vendor_id) == 96);
static_assert(offsetof(ibv_device_attr, vendor_part_id) == 100);
static_assert(offsetof(ibv_device_attr, max_qp) == 108);
static_assert(offsetof(ibv_device_attr, max_qp_wr) == 112);
static_assert(offsetof(ibv_device_attr, device_cap_flags) == 116);
static_assert(offsetof(ibv_device_attr, max_sge) == 120);
static_assert(offsetof(ibv_device_attr, max_sge_rd) == 124);
static_assert(offsetof(ibv_device_attr, max_cq) == 128);
static_assert(offsetof(ibv_device_attr, max_cqe) == 132);
static_assert(offsetof(ibv_device_attr, max_mr) == 136);
static_assert(offsetof(ibv_device_attr, max_pd) == 140);
static_assert(offsetof(ibv_device_attr, max_qp_rd_atom) == 144);
static_assert(offsetof(ibv_device_attr, max_res_rd_atom) == 152);
static_assert(offsetof(ibv_device_attr, max_qp_init_rd_atom) == 156);
static_assert(offsetof(ibv_device_attr, atomic_cap) == 164);
static_assert(offsetof(ibv_device_attr, max_mw) == 176);
static_assert(offsetof(ibv_device_attr, max_mcast_grp) == 188);
static_assert(offsetof(ibv_device_attr, max_ah) == 200);
static_assert(offsetof(ibv_device_attr, max_srq) == 212);
static_assert(offsetof(ibv_device_attr, max_srq_wr) == 216);
static_assert(offsetof(ibv_device_attr, max_srq_sge) == 220);
static_assert(offsetof(ibv_device_attr, max_pkeys) == 224);
static_assert(offsetof(ibv_device_attr, local_ca_ack_delay) == 226);
static_assert(offsetof(ibv_device_attr, phys_port_cnt) == 227);

static_assert(sizeof(ibv_device_attr_ex) == 400);
static_assert(offsetof(ibv_device_attr_ex, odp_caps) == 240);
static_assert(offsetof(ibv_device_attr_ex, device_cap_flags_ex) == 280);
static_assert(offsetof(ibv_device_attr_ex, tm_caps) == 348);
static_assert(offsetof(ibv_device_attr_ex, max_dm_size) == 376);
static_assert(offsetof(ibv_device_attr_ex, pci_atomic_caps) == 384);
static_assert(offsetof(ibv_device_attr_ex, xrc_odp_caps) == 392);
static_assert(offsetof(ibv_device_attr_ex, phys_port_cnt_ex) == 396);

static_assert(sizeof(ibv_qp_attr) == 144);
static_assert(offsetof(ibv_qp_attr, qp_state) == 0);
static_assert(offsetof(ibv_qp_attr, cur_qp_state) == 4);
static_assert(offsetof(ibv_qp_attr, path_mtu) == 8);
static_assert(offsetof(ibv_qp_attr, path_mig_state) == 12);
static_assert(offsetof(ibv_qp_attr, qkey) == 16);
static_assert(offsetof(ibv_qp_attr, rq_psn) == 20);
static_assert(offsetof(ibv_qp_attr, sq_psn) == 24);
static_assert(offsetof(ibv_qp_attr, dest_qp_num) == 28);
static_assert(offsetof(ibv_qp_attr, qp_access_flags) == 32);
static_assert(offsetof(ibv_qp_attr, cap) == 36);
static_assert(offsetof(ibv_qp_attr, ah_attr) == 56);
static_assert(offsetof(ibv_qp_attr, alt_ah_attr) == 88);
static_assert(offsetof(ibv_qp_attr, pkey_index) == 120);
static_assert(offsetof(ibv_qp_attr, en_sqd_async_notify) == 124);
static_assert(offsetof(ibv_qp_attr, sq_draining) == 125);
static_assert(offsetof(ibv_qp_attr, max_rd_atomic) == 126);
static_assert(offsetof(ibv_qp_attr, max_dest_rd_atomic) == 127);
static_assert(offsetof(ibv_qp_attr, min_rnr_timer) == 128);
static_assert(offsetof(ibv_qp_attr, port_num) == 129);
static_assert(offsetof(ibv_qp_attr, timeout) == 130);
static_assert(offsetof(ibv_qp_attr, retry_cnt) == 131);
static_assert(offsetof(ibv_qp_attr, rnr_retry) == 132);
static_assert(offsetof(ibv_qp_attr, rate_limit) == 136);

static_assert(sizeof(ibv_qp_init_attr) == 64);

static_assert(sizeof(ibv_qp_init_attr_ex) == 136);
static_assert(offsetof(ibv_qp_init_attr_ex, comp_mask) == 60);
static_assert(offsetof(ibv_qp_init_attr_ex, send_ops_flags) == 128);

static_assert(sizeof(ibv_srq_init_attr) == 24);

static_assert(sizeof(ibv_srq_init_attr_ex) == 64);

static_assert(sizeof(ibv_cq_init_attr_ex) == 56);

static_assert(sizeof(ibv_qp_cap) == 20);

static_assert(sizeof(ibv_send_wr) == 128);
static_assert(offsetof(ibv_send_wr, wr_id) == 0);
static_assert(offsetof(ibv_send_wr, next) == 8);
static_assert(offsetof(ibv_send_wr, sg_list) == 16);
static_assert(offsetof(ibv_send_wr, num_sge) == 24);
static_assert(offsetof(ibv_send_wr, opcode) == 28);
static_assert(offsetof(ibv_send_wr, send_flags) == 32);
static_assert(offsetof(ibv_send_wr, imm_data) == 36);
static_assert(offsetof(ibv_send_wr, wr) == 40);
static_assert(offsetof(ibv_send_wr, qp_type) == 72);
static_assert(offsetof(ibv_send_wr, bind_mw) == 80);

static_assert(sizeof(ibv_recv_wr) == 32);

static_assert(sizeof(ibv_sge) == 16);

static_assert(sizeof(ibv_wc) == 48);
static_assert(offsetof(ibv_wc, wr_id) == 0);
static_assert(offsetof(ibv_wc, status) == 8);
static_assert(offsetof(ibv_wc, opcode) == 12);
static_assert(offsetof(ibv_wc, vendor_err) == 16);
static_assert(offsetof(ibv_wc, byte_len) == 20);
static_assert(offsetof(ibv_wc, imm_data) == 24);
static_assert(offsetof(ibv_wc, qp_num) == 28);
static_assert(offsetof(ibv_wc, src_qp) == 32);
static_assert(offsetof(ibv_wc, wc_flags) == 36);
static_assert(offsetof(ibv_wc, pkey_index) == 40);
static_assert(offsetof(ibv_wc, slid) == 42);
static_assert(offsetof(ibv_wc, sl) == 44);
static_assert(offsetof(ibv_wc, dlid_path_bits) == 45);

static_assert(sizeof(ibv_grh) == 40);

static_assert(sizeof(ibv_ah_attr) == 32);

static_assert(sizeof(ibv_global_route) == 24);

static_assert(sizeof(ibv_gid_entry) == 32);
static_assert(offsetof(ibv_gid_entry, gid) == 0);
static_assert(offsetof(ibv_gid_entry, gid_index) == 16);
static_assert(offsetof(ibv_gid_entry, port_num) == 20);
static_assert(offsetof(ibv_gid_entry, gid_type) == 24);
static_assert(offsetof(ibv_gid_entry, ndev_ifindex) == 28);

static_assert(sizeof(ibv_async_event) == 16);
static_assert(offsetof(ibv_async_event, element) == 0);
static_assert(offsetof(ibv_async_event, event_type) == 8);

static_assert(sizeof(ibv_mw_bind) == 48);

static_assert(sizeof(ibv_ece) == 12);
