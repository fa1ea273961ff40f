/* SPDX-License-Identifier: BSD-2-Clause */
/* Has every name of the experimental verbs its value, type and place? In C and in C++.
 *
 * A name that differs stops the compiler: the array of that name has a negative length. */
#pragma once

#include <infiniband/verbs.h>

#define VALUE(name, value) extern char name##_is[(unsigned long long)(name) == (value) ? 1 : -1]
#define MEMBER(type, name, at) \
  extern char type##_##name##_lies[offsetof(struct type, name) == (at) ? 1 : -1]
#define NESTED(type, part, name, at) \
  extern char type##_##name##_lies[offsetof(struct type, part.name) == (at) ? 1 : -1]
#define SIZE(type, bytes) extern char type##_is_long[sizeof(struct type) == (bytes) ? 1 : -1]
#define FLAG(bit) (1ULL << (32 + (bit)))

VALUE(IBV_EXP_START_ENUM, 0x40);
VALUE(IBV_EXP_START_FLAG_LOC, 0x20);
VALUE(IBV_EXP_START_FLAG, FLAG(0));
VALUE(IBV_EXP_IMPLICIT_MR_SIZE, SIZE_MAX);
VALUE(IBV_EXP_ACCESS_FLAGS_SHIFT, 15);

VALUE(IBV_EXP_ACCESS_LOCAL_WRITE, 1);
VALUE(IBV_EXP_ACCESS_REMOTE_WRITE, 2);
VALUE(IBV_EXP_ACCESS_REMOTE_READ, 4);
VALUE(IBV_EXP_ACCESS_REMOTE_ATOMIC, 8);
VALUE(IBV_EXP_ACCESS_MW_BIND, 16);
VALUE(IBV_EXP_ACCESS_ALLOCATE_MR, 1ULL << 37);
VALUE(IBV_EXP_ACCESS_SHARED_MR_USER_READ, 1ULL << 38);
VALUE(IBV_EXP_ACCESS_SHARED_MR_USER_WRITE, 1ULL << 39);
VALUE(IBV_EXP_ACCESS_SHARED_MR_GROUP_READ, 1ULL << 40);
VALUE(IBV_EXP_ACCESS_SHARED_MR_GROUP_WRITE, 1ULL << 41);
VALUE(IBV_EXP_ACCESS_SHARED_MR_OTHER_READ, 1ULL << 42);
VALUE(IBV_EXP_ACCESS_SHARED_MR_OTHER_WRITE, 1ULL << 43);
VALUE(IBV_EXP_ACCESS_NO_RDMA, 1ULL << 44);
VALUE(IBV_EXP_ACCESS_MW_ZERO_BASED, 1ULL << 45);
VALUE(IBV_EXP_ACCESS_ON_DEMAND, 1ULL << 46);
VALUE(IBV_EXP_ACCESS_RELAXED, 1ULL << 47);
VALUE(IBV_EXP_ACCESS_PHYSICAL_ADDR, 1ULL << 48);
VALUE(IBV_EXP_ACCESS_TUNNELED_ATOMIC, 1ULL << 49);
VALUE(IBV_EXP_ACCESS_RESERVED, 1ULL << 50);

VALUE(IBV_EXP_REG_MR_CREATE_FLAGS, 1);
VALUE(IBV_EXP_REG_MR_DM, 2);
VALUE(IBV_EXP_REG_MR_RESERVED, 4);
VALUE(IBV_EXP_REG_MR_CREATE_CONTIG, 1);
VALUE(IBV_EXP_REG_SHARED_MR_RESERVED, 1);

MEMBER(ibv_exp_reg_mr_in, pd, 0);
MEMBER(ibv_exp_reg_mr_in, addr, 8);
MEMBER(ibv_exp_reg_mr_in, length, 16);
MEMBER(ibv_exp_reg_mr_in, exp_access, 24);
MEMBER(ibv_exp_reg_mr_in, comp_mask, 32);
MEMBER(ibv_exp_reg_mr_in, create_flags, 36);
MEMBER(ibv_exp_reg_mr_in, dm, 40);
SIZE(ibv_exp_reg_mr_in, 48);

MEMBER(ibv_exp_reg_shared_mr_in, mr_handle, 0);
MEMBER(ibv_exp_reg_shared_mr_in, pd, 8);
MEMBER(ibv_exp_reg_shared_mr_in, addr, 16);
MEMBER(ibv_exp_reg_shared_mr_in, exp_access, 24);
MEMBER(ibv_exp_reg_shared_mr_in, comp_mask, 32);
SIZE(ibv_exp_reg_shared_mr_in, 40);

VALUE(IBV_EXP_PREFETCH_WRITE_ACCESS, 1);
VALUE(IBV_EXP_PREFETCH_MR_RESERVED, 1);
MEMBER(ibv_exp_prefetch_attr, flags, 0);
MEMBER(ibv_exp_prefetch_attr, addr, 8);
MEMBER(ibv_exp_prefetch_attr, length, 16);
MEMBER(ibv_exp_prefetch_attr, comp_mask, 24);
SIZE(ibv_exp_prefetch_attr, 32);

VALUE(IBV_EXP_REREG_MR_CHANGE_TRANSLATION, 1);
VALUE(IBV_EXP_REREG_MR_CHANGE_PD, 2);
VALUE(IBV_EXP_REREG_MR_CHANGE_ACCESS, 4);
VALUE(IBV_EXP_REREG_MR_KEEP_VALID, 8);
VALUE(IBV_EXP_REREG_MR_FLAGS_SUPPORTED, 15);
VALUE(IBV_EXP_REREG_MR_ATTR_RESERVED, 1);
MEMBER(ibv_exp_rereg_mr_attr, comp_mask, 0);
SIZE(ibv_exp_rereg_mr_attr, 4);
MEMBER(ibv_exp_rereg_out, need_dofork, 0);
MEMBER(ibv_exp_rereg_out, comp_mask, 4);
SIZE(ibv_exp_rereg_out, 8);
MEMBER(ibv_exp_dereg_out, need_dofork, 0);
MEMBER(ibv_exp_dereg_out, comp_mask, 4);
SIZE(ibv_exp_dereg_out, 8);

VALUE(IBV_EXP_ODP_SUPPORT, 1);
VALUE(IBV_EXP_ODP_SUPPORT_SEND, 1);
VALUE(IBV_EXP_ODP_SUPPORT_RECV, 2);
VALUE(IBV_EXP_ODP_SUPPORT_WRITE, 4);
VALUE(IBV_EXP_ODP_SUPPORT_READ, 8);
VALUE(IBV_EXP_ODP_SUPPORT_ATOMIC, 16);
VALUE(IBV_EXP_ODP_SUPPORT_SRQ_RECV, 32);

MEMBER(ibv_exp_odp_caps, general_odp_caps, 0);
MEMBER(ibv_exp_odp_caps, per_transport_caps, 8);
SIZE(ibv_exp_odp_caps, 32);
NESTED(ibv_exp_odp_caps, per_transport_caps, rc_odp_caps, 8);
NESTED(ibv_exp_odp_caps, per_transport_caps, uc_odp_caps, 12);
NESTED(ibv_exp_odp_caps, per_transport_caps, ud_odp_caps, 16);
NESTED(ibv_exp_odp_caps, per_transport_caps, dc_odp_caps, 20);
NESTED(ibv_exp_odp_caps, per_transport_caps, xrc_odp_caps, 24);
NESTED(ibv_exp_odp_caps, per_transport_caps, raw_eth_odp_caps, 28);

VALUE(IBV_EXP_DEVICE_DC_TRANSPORT, FLAG(0));
VALUE(IBV_EXP_DEVICE_QPG, FLAG(1));
VALUE(IBV_EXP_DEVICE_UD_RSS, FLAG(2));
VALUE(IBV_EXP_DEVICE_UD_TSS, FLAG(3));
VALUE(IBV_EXP_DEVICE_EXT_ATOMICS, FLAG(4));
VALUE(IBV_EXP_DEVICE_NOP, FLAG(5));
VALUE(IBV_EXP_DEVICE_UMR, FLAG(6));
VALUE(IBV_EXP_DEVICE_ODP, FLAG(7));
VALUE(IBV_EXP_DEVICE_MEM_WINDOW, FLAG(17));
VALUE(IBV_EXP_DEVICE_PHYSICAL_RANGE_MR, FLAG(19));
VALUE(IBV_EXP_DEVICE_MEM_MGT_EXTENSIONS, FLAG(21));
VALUE(IBV_EXP_DEVICE_MW_TYPE_2A, FLAG(23));
VALUE(IBV_EXP_DEVICE_MW_TYPE_2B, FLAG(24));
VALUE(IBV_EXP_DEVICE_CROSS_CHANNEL, FLAG(28));
VALUE(IBV_EXP_DEVICE_MANAGED_FLOW_STEERING, FLAG(29));
VALUE(IBV_EXP_DEVICE_MR_ALLOCATE, FLAG(30));
VALUE(IBV_EXP_DEVICE_SHARED_MR, FLAG(31));

VALUE(IBV_EXP_DEVICE_ATTR_CALC_CAP, 1U << 0);
VALUE(IBV_EXP_DEVICE_ATTR_WITH_TIMESTAMP_MASK, 1U << 1);
VALUE(IBV_EXP_DEVICE_ATTR_WITH_HCA_CORE_CLOCK, 1U << 2);
VALUE(IBV_EXP_DEVICE_ATTR_EXP_CAP_FLAGS, 1U << 3);
VALUE(IBV_EXP_DEVICE_DC_RD_REQ, 1U << 4);
VALUE(IBV_EXP_DEVICE_DC_RD_RES, 1U << 5);
VALUE(IBV_EXP_DEVICE_ATTR_INLINE_RECV_SZ, 1U << 6);
VALUE(IBV_EXP_DEVICE_ATTR_RSS_TBL_SZ, 1U << 7);
VALUE(IBV_EXP_DEVICE_ATTR_EXT_ATOMIC_ARGS, 1U << 8);
VALUE(IBV_EXP_DEVICE_ATTR_UMR, 1U << 9);
VALUE(IBV_EXP_DEVICE_ATTR_ODP, 1U << 10);
VALUE(IBV_EXP_DEVICE_ATTR_MAX_DCT, 1U << 11);
VALUE(IBV_EXP_DEVICE_ATTR_MAX_CTX_RES_DOMAIN, 1U << 12);
VALUE(IBV_EXP_DEVICE_ATTR_RX_HASH, 1U << 13);
VALUE(IBV_EXP_DEVICE_ATTR_MAX_WQ_TYPE_RQ, 1U << 14);
VALUE(IBV_EXP_DEVICE_ATTR_MAX_DEVICE_CTX, 1U << 15);
VALUE(IBV_EXP_DEVICE_ATTR_MP_RQ, 1U << 16);
VALUE(IBV_EXP_DEVICE_ATTR_VLAN_OFFLOADS, 1U << 17);
VALUE(IBV_EXP_DEVICE_ATTR_EC_CAPS, 1U << 18);
VALUE(IBV_EXP_DEVICE_ATTR_MASKED_ATOMICS, 1U << 19);
VALUE(IBV_EXP_DEVICE_ATTR_RX_PAD_END_ALIGN, 1U << 20);
VALUE(IBV_EXP_DEVICE_ATTR_TSO_CAPS, 1U << 21);
VALUE(IBV_EXP_DEVICE_ATTR_PACKET_PACING_CAPS, 1U << 22);
VALUE(IBV_EXP_DEVICE_ATTR_EC_GF_BASE, 1U << 23);
VALUE(IBV_EXP_DEVICE_ATTR_OOO_CAPS, 1U << 24);
VALUE(IBV_EXP_DEVICE_ATTR_SW_PARSING_CAPS, 1U << 25);
VALUE(IBV_EXP_DEVICE_ATTR_ODP_MAX_SIZE, 1U << 26);
VALUE(IBV_EXP_DEVICE_ATTR_TM_CAPS, 1U << 27);
VALUE(IBV_EXP_DEVICE_ATTR_TUNNEL_OFFLOADS_CAPS, 1U << 28);
VALUE(IBV_EXP_DEVICE_ATTR_MAX_DM_SIZE, 1U << 29);
VALUE(IBV_EXP_DEVICE_ATTR_TUNNELED_ATOMIC, 1U << 30);
VALUE(IBV_EXP_DEVICE_ATTR_COMP_MASK_2, 1U << 31);
VALUE(IBV_EXP_DEVICE_ATTR_RESERVED, 1U << 23);
VALUE(IBV_EXP_DEVICE_ATTR_UMR_FIXED_SIZE_CAPS, 1);
VALUE(IBV_EXP_DEVICE_ATTR_PCI_ATOMIC_CAPS, 2);

MEMBER(ibv_exp_device_attr, fw_ver, 0);
MEMBER(ibv_exp_device_attr, node_guid, 64);
MEMBER(ibv_exp_device_attr, sys_image_guid, 72);
MEMBER(ibv_exp_device_attr, max_mr_size, 80);
MEMBER(ibv_exp_device_attr, page_size_cap, 88);
MEMBER(ibv_exp_device_attr, vendor_id, 96);
MEMBER(ibv_exp_device_attr, vendor_part_id, 100);
MEMBER(ibv_exp_device_attr, hw_ver, 104);
MEMBER(ibv_exp_device_attr, max_qp, 108);
MEMBER(ibv_exp_device_attr, max_qp_wr, 112);
MEMBER(ibv_exp_device_attr, reserved, 116);
MEMBER(ibv_exp_device_attr, max_sge, 120);
MEMBER(ibv_exp_device_attr, max_sge_rd, 124);
MEMBER(ibv_exp_device_attr, max_cq, 128);
MEMBER(ibv_exp_device_attr, max_cqe, 132);
MEMBER(ibv_exp_device_attr, max_mr, 136);
MEMBER(ibv_exp_device_attr, max_pd, 140);
MEMBER(ibv_exp_device_attr, max_qp_rd_atom, 144);
MEMBER(ibv_exp_device_attr, max_ee_rd_atom, 148);
MEMBER(ibv_exp_device_attr, max_res_rd_atom, 152);
MEMBER(ibv_exp_device_attr, max_qp_init_rd_atom, 156);
MEMBER(ibv_exp_device_attr, max_ee_init_rd_atom, 160);
MEMBER(ibv_exp_device_attr, exp_atomic_cap, 164);
MEMBER(ibv_exp_device_attr, max_ee, 168);
MEMBER(ibv_exp_device_attr, max_rdd, 172);
MEMBER(ibv_exp_device_attr, max_mw, 176);
MEMBER(ibv_exp_device_attr, max_raw_ipv6_qp, 180);
MEMBER(ibv_exp_device_attr, max_raw_ethy_qp, 184);
MEMBER(ibv_exp_device_attr, max_mcast_grp, 188);
MEMBER(ibv_exp_device_attr, max_mcast_qp_attach, 192);
MEMBER(ibv_exp_device_attr, max_total_mcast_qp_attach, 196);
MEMBER(ibv_exp_device_attr, max_ah, 200);
MEMBER(ibv_exp_device_attr, max_fmr, 204);
MEMBER(ibv_exp_device_attr, max_map_per_fmr, 208);
MEMBER(ibv_exp_device_attr, max_srq, 212);
MEMBER(ibv_exp_device_attr, max_srq_wr, 216);
MEMBER(ibv_exp_device_attr, max_srq_sge, 220);
MEMBER(ibv_exp_device_attr, max_pkeys, 224);
MEMBER(ibv_exp_device_attr, local_ca_ack_delay, 226);
MEMBER(ibv_exp_device_attr, phys_port_cnt, 227);
MEMBER(ibv_exp_device_attr, comp_mask, 228);
MEMBER(ibv_exp_device_attr, calc_cap, 232);
MEMBER(ibv_exp_device_attr, timestamp_mask, 272);
MEMBER(ibv_exp_device_attr, hca_core_clock, 280);
MEMBER(ibv_exp_device_attr, exp_device_cap_flags, 288);
MEMBER(ibv_exp_device_attr, max_dc_req_rd_atom, 296);
MEMBER(ibv_exp_device_attr, max_dc_res_rd_atom, 300);
MEMBER(ibv_exp_device_attr, inline_recv_sz, 304);
MEMBER(ibv_exp_device_attr, max_rss_tbl_sz, 308);
MEMBER(ibv_exp_device_attr, ext_atom, 312);
MEMBER(ibv_exp_device_attr, umr_caps, 328);
MEMBER(ibv_exp_device_attr, odp_caps, 344);
MEMBER(ibv_exp_device_attr, max_dct, 376);
MEMBER(ibv_exp_device_attr, max_ctx_res_domain, 380);
MEMBER(ibv_exp_device_attr, rx_hash_caps, 384);
MEMBER(ibv_exp_device_attr, max_wq_type_rq, 416);
MEMBER(ibv_exp_device_attr, max_device_ctx, 420);
MEMBER(ibv_exp_device_attr, mp_rq_caps, 424);
MEMBER(ibv_exp_device_attr, wq_vlan_offloads_cap, 436);
MEMBER(ibv_exp_device_attr, ec_caps, 440);
MEMBER(ibv_exp_device_attr, masked_atomic, 448);
MEMBER(ibv_exp_device_attr, rx_pad_end_addr_align, 472);
MEMBER(ibv_exp_device_attr, tso_caps, 476);
MEMBER(ibv_exp_device_attr, packet_pacing_caps, 484);
SIZE(ibv_exp_device_attr, 504);

#undef FLAG
#undef MEMBER
#undef NESTED
#undef SIZE
#undef VALUE
