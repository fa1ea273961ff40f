/* SPDX-License-Identifier: BSD-2-Clause */
/* Which experimental verbs does Weft offer? Those that register memory.
 *
 * Names, values and the order of members are those of Mellanox OFED 2.2 to 4.2, so that its
 * programs compile; the binary interface is Weft's own. Manual: ibv_exp_reg_mr(3),
 * ibv_exp_reg_shared_mr(3). A call fails with ENOSYS where the libibverbs that the program runs on
 * does not have it, as Debian's.
 *
 * Each structure with a comp_mask may grow at its end: a member that a bit names is only read, or
 * written, if the caller has set that bit. *_RESERVED is the first bit that this header does not
 * know; calls refuse it, and all above, with EINVAL. */
#ifndef WEFT_OFED_INFINIBAND_VERBS_EXP_H
#define WEFT_OFED_INFINIBAND_VERBS_EXP_H

#include <errno.h>
#include <infiniband/verbs.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Flags of these verbs are in the upper half of 64 bits, standard ones in the lower half. */
__extension__ enum ibv_exp_start_values {
  IBV_EXP_START_ENUM = 0x40,
  IBV_EXP_START_FLAG_LOC = 0x20,
  IBV_EXP_START_FLAG = 1ULL << IBV_EXP_START_FLAG_LOC
};

/* The length of a region of all memory, with IBV_EXP_ACCESS_ON_DEMAND and address 0. */
#define IBV_EXP_IMPLICIT_MR_SIZE (~(size_t)0)

/* How programs squeezed such flags into 32 bits for a command of the kernel. Not used by Weft. */
#define IBV_EXP_ACCESS_FLAGS_SHIFT 0x0F

__extension__ enum ibv_exp_access_flags {
  IBV_EXP_ACCESS_LOCAL_WRITE = IBV_ACCESS_LOCAL_WRITE,
  IBV_EXP_ACCESS_REMOTE_WRITE = IBV_ACCESS_REMOTE_WRITE,
  IBV_EXP_ACCESS_REMOTE_READ = IBV_ACCESS_REMOTE_READ,
  IBV_EXP_ACCESS_REMOTE_ATOMIC = IBV_ACCESS_REMOTE_ATOMIC,
  IBV_EXP_ACCESS_MW_BIND = IBV_ACCESS_MW_BIND,

  /* The verb allocates the memory; ibv_dereg_mr(3) frees it. */
  IBV_EXP_ACCESS_ALLOCATE_MR = IBV_EXP_START_FLAG << 5,
  /* Grants: which users may attach to the region by its handle, and how. */
  IBV_EXP_ACCESS_SHARED_MR_USER_READ = IBV_EXP_START_FLAG << 6,
  IBV_EXP_ACCESS_SHARED_MR_USER_WRITE = IBV_EXP_START_FLAG << 7,
  IBV_EXP_ACCESS_SHARED_MR_GROUP_READ = IBV_EXP_START_FLAG << 8,
  IBV_EXP_ACCESS_SHARED_MR_GROUP_WRITE = IBV_EXP_START_FLAG << 9,
  IBV_EXP_ACCESS_SHARED_MR_OTHER_READ = IBV_EXP_START_FLAG << 10,
  IBV_EXP_ACCESS_SHARED_MR_OTHER_WRITE = IBV_EXP_START_FLAG << 11,
  /* ibv_exp_reg_shared_mr(3) maps the memory and registers nothing. */
  IBV_EXP_ACCESS_NO_RDMA = IBV_EXP_START_FLAG << 12,
  IBV_EXP_ACCESS_MW_ZERO_BASED = IBV_EXP_START_FLAG << 13,
  IBV_EXP_ACCESS_ON_DEMAND = IBV_EXP_START_FLAG << 14,
  IBV_EXP_ACCESS_RELAXED = IBV_EXP_START_FLAG << 15,
  IBV_EXP_ACCESS_PHYSICAL_ADDR = IBV_EXP_START_FLAG << 16,
  IBV_EXP_ACCESS_TUNNELED_ATOMIC = IBV_EXP_START_FLAG << 17,
  IBV_EXP_ACCESS_RESERVED = IBV_EXP_START_FLAG << 18
};

/* Memory of a device; there is none in Weft. */
struct ibv_exp_dm;

enum ibv_exp_reg_mr_in_comp_mask {
  IBV_EXP_REG_MR_CREATE_FLAGS = 1 << 0,
  IBV_EXP_REG_MR_DM = 1 << 1,
  IBV_EXP_REG_MR_RESERVED = 1 << 2
};

enum ibv_exp_reg_mr_create_flags {
  /* The verb allocates the memory, of huge pages, at `addr` where that is not null. */
  IBV_EXP_REG_MR_CREATE_CONTIG = 1 << 0
};

struct ibv_exp_reg_mr_in {
  struct ibv_pd* pd;
  void* addr;
  size_t length;
  uint64_t exp_access; /* enum ibv_exp_access_flags */
  uint32_t comp_mask;
  uint32_t create_flags;
  struct ibv_exp_dm* dm;
};

enum ibv_exp_reg_shared_mr_comp_mask { IBV_EXP_REG_SHARED_MR_RESERVED = 1 << 0 };

struct ibv_exp_reg_shared_mr_in {
  uint32_t mr_handle; /* of the region's creator */
  struct ibv_pd* pd;
  void* addr; /* where the memory is to be mapped if that place is free */
  uint64_t exp_access;
  uint32_t comp_mask;
};

enum ibv_exp_prefetch_attr_flags { IBV_EXP_PREFETCH_WRITE_ACCESS = 1 << 0 };

enum ibv_exp_prefetch_attr_comp_mask { IBV_EXP_PREFETCH_MR_RESERVED = 1 << 0 };

struct ibv_exp_prefetch_attr {
  uint32_t flags;
  void* addr;
  size_t length;
  uint32_t comp_mask;
};

enum ibv_exp_rereg_mr_flags {
  IBV_EXP_REREG_MR_CHANGE_TRANSLATION = IBV_REREG_MR_CHANGE_TRANSLATION,
  IBV_EXP_REREG_MR_CHANGE_PD = IBV_REREG_MR_CHANGE_PD,
  IBV_EXP_REREG_MR_CHANGE_ACCESS = IBV_REREG_MR_CHANGE_ACCESS,
  IBV_EXP_REREG_MR_KEEP_VALID = 1 << 3,
  IBV_EXP_REREG_MR_FLAGS_SUPPORTED = (1 << 4) - 1
};

enum ibv_exp_rereg_mr_attr_mask { IBV_EXP_REREG_MR_ATTR_RESERVED = 1 << 0 };

struct ibv_exp_rereg_mr_attr {
  uint32_t comp_mask;
};

/* Between a library and its driver; no call of this header takes them. */
struct ibv_exp_rereg_out {
  int need_dofork;
  uint32_t comp_mask;
};

struct ibv_exp_dereg_out {
  int need_dofork;
  uint32_t comp_mask;
};

enum ibv_exp_odp_general_cap_bits { IBV_EXP_ODP_SUPPORT = 1 << 0 };

enum ibv_exp_odp_transport_cap_bits {
  IBV_EXP_ODP_SUPPORT_SEND = 1 << 0,
  IBV_EXP_ODP_SUPPORT_RECV = 1 << 1,
  IBV_EXP_ODP_SUPPORT_WRITE = 1 << 2,
  IBV_EXP_ODP_SUPPORT_READ = 1 << 3,
  IBV_EXP_ODP_SUPPORT_ATOMIC = 1 << 4,
  IBV_EXP_ODP_SUPPORT_SRQ_RECV = 1 << 5
};

struct ibv_exp_odp_caps {
  uint64_t general_odp_caps;
  struct {
    uint32_t rc_odp_caps;
    uint32_t uc_odp_caps;
    uint32_t ud_odp_caps;
    uint32_t dc_odp_caps;
    uint32_t xrc_odp_caps;
    uint32_t raw_eth_odp_caps;
  } per_transport_caps;
};

/* Bits of exp_device_cap_flags; its lower half has those of enum ibv_device_cap_flags. */
__extension__ enum ibv_exp_device_cap_flags {
  IBV_EXP_DEVICE_DC_TRANSPORT = IBV_EXP_START_FLAG << 0,
  IBV_EXP_DEVICE_QPG = IBV_EXP_START_FLAG << 1,
  IBV_EXP_DEVICE_UD_RSS = IBV_EXP_START_FLAG << 2,
  IBV_EXP_DEVICE_UD_TSS = IBV_EXP_START_FLAG << 3,
  IBV_EXP_DEVICE_EXT_ATOMICS = IBV_EXP_START_FLAG << 4,
  IBV_EXP_DEVICE_NOP = IBV_EXP_START_FLAG << 5,
  IBV_EXP_DEVICE_UMR = IBV_EXP_START_FLAG << 6,
  IBV_EXP_DEVICE_ODP = IBV_EXP_START_FLAG << 7,
  IBV_EXP_DEVICE_MEM_WINDOW = IBV_EXP_START_FLAG << 17,
  IBV_EXP_DEVICE_PHYSICAL_RANGE_MR = IBV_EXP_START_FLAG << 19,
  IBV_EXP_DEVICE_MEM_MGT_EXTENSIONS = IBV_EXP_START_FLAG << 21,
  IBV_EXP_DEVICE_MW_TYPE_2A = IBV_EXP_START_FLAG << 23,
  IBV_EXP_DEVICE_MW_TYPE_2B = IBV_EXP_START_FLAG << 24,
  IBV_EXP_DEVICE_CROSS_CHANNEL = IBV_EXP_START_FLAG << 28,
  IBV_EXP_DEVICE_MANAGED_FLOW_STEERING = IBV_EXP_START_FLAG << 29,
  IBV_EXP_DEVICE_MR_ALLOCATE = IBV_EXP_START_FLAG << 30,
  IBV_EXP_DEVICE_SHARED_MR = IBV_EXP_START_FLAG << 31
};

/* Groups of ibv_exp_device_attr. This header has the members of those below RESERVED. */
__extension__ enum ibv_exp_device_attr_comp_mask {
  IBV_EXP_DEVICE_ATTR_CALC_CAP = 1 << 0,
  IBV_EXP_DEVICE_ATTR_WITH_TIMESTAMP_MASK = 1 << 1,
  IBV_EXP_DEVICE_ATTR_WITH_HCA_CORE_CLOCK = 1 << 2,
  IBV_EXP_DEVICE_ATTR_EXP_CAP_FLAGS = 1 << 3,
  IBV_EXP_DEVICE_DC_RD_REQ = 1 << 4,
  IBV_EXP_DEVICE_DC_RD_RES = 1 << 5,
  IBV_EXP_DEVICE_ATTR_INLINE_RECV_SZ = 1 << 6,
  IBV_EXP_DEVICE_ATTR_RSS_TBL_SZ = 1 << 7,
  IBV_EXP_DEVICE_ATTR_EXT_ATOMIC_ARGS = 1 << 8,
  IBV_EXP_DEVICE_ATTR_UMR = 1 << 9,
  IBV_EXP_DEVICE_ATTR_ODP = 1 << 10,
  IBV_EXP_DEVICE_ATTR_MAX_DCT = 1 << 11,
  IBV_EXP_DEVICE_ATTR_MAX_CTX_RES_DOMAIN = 1 << 12,
  IBV_EXP_DEVICE_ATTR_RX_HASH = 1 << 13,
  IBV_EXP_DEVICE_ATTR_MAX_WQ_TYPE_RQ = 1 << 14,
  IBV_EXP_DEVICE_ATTR_MAX_DEVICE_CTX = 1 << 15,
  IBV_EXP_DEVICE_ATTR_MP_RQ = 1 << 16,
  IBV_EXP_DEVICE_ATTR_VLAN_OFFLOADS = 1 << 17,
  IBV_EXP_DEVICE_ATTR_EC_CAPS = 1 << 18,
  IBV_EXP_DEVICE_ATTR_MASKED_ATOMICS = 1 << 19,
  IBV_EXP_DEVICE_ATTR_RX_PAD_END_ALIGN = 1 << 20,
  IBV_EXP_DEVICE_ATTR_TSO_CAPS = 1 << 21,
  IBV_EXP_DEVICE_ATTR_PACKET_PACING_CAPS = 1 << 22,
  IBV_EXP_DEVICE_ATTR_RESERVED = 1 << 23,
  IBV_EXP_DEVICE_ATTR_EC_GF_BASE = 1 << 23,
  IBV_EXP_DEVICE_ATTR_OOO_CAPS = 1 << 24,
  IBV_EXP_DEVICE_ATTR_SW_PARSING_CAPS = 1 << 25,
  IBV_EXP_DEVICE_ATTR_ODP_MAX_SIZE = 1 << 26,
  IBV_EXP_DEVICE_ATTR_TM_CAPS = 1 << 27,
  IBV_EXP_DEVICE_ATTR_TUNNEL_OFFLOADS_CAPS = 1 << 28,
  IBV_EXP_DEVICE_ATTR_MAX_DM_SIZE = 1 << 29,
  IBV_EXP_DEVICE_ATTR_TUNNELED_ATOMIC = 1 << 30,
  IBV_EXP_DEVICE_ATTR_COMP_MASK_2 = 1U << 31
};

enum ibv_exp_device_attr_comp_mask_2 {
  IBV_EXP_DEVICE_ATTR_UMR_FIXED_SIZE_CAPS = 1 << 0,
  IBV_EXP_DEVICE_ATTR_PCI_ATOMIC_CAPS = 1 << 1
};

enum ibv_exp_atomic_cap {
  IBV_EXP_ATOMIC_NONE = IBV_ATOMIC_NONE,
  IBV_EXP_ATOMIC_HCA = IBV_ATOMIC_HCA,
  IBV_EXP_ATOMIC_GLOB = IBV_ATOMIC_GLOB
};

/* Groups of members that Weft has nothing to say about. */
struct ibv_exp_device_calc_cap {
  uint64_t data_types;
  uint64_t data_sizes;
  uint64_t int_ops;
  uint64_t uint_ops;
  uint64_t fp_ops;
};

struct ibv_exp_ext_atomics_params {
  uint64_t log_atomic_arg_sizes;
  uint32_t max_fa_bit_boundary;
  uint32_t log_max_atomic_inline;
};

struct ibv_exp_umr_caps {
  uint32_t max_klm_list_size;
  uint32_t max_send_wqe_inline_klms;
  uint32_t max_umr_recursion_depth;
  uint32_t max_umr_stride_dimension;
};

struct ibv_exp_rx_hash_caps {
  uint32_t max_rwq_indirection_tables;
  uint32_t max_rwq_indirection_table_size;
  uint8_t supported_hash_functions;
  uint64_t supported_packet_fields;
  uint32_t supported_qps;
};

struct ibv_exp_mp_rq_caps {
  uint32_t supported_qps;
  uint32_t allowed_shifts;
  uint8_t min_single_wqe_log_num_of_strides;
  uint8_t max_single_wqe_log_num_of_strides;
  uint8_t min_single_stride_log_num_of_bytes;
  uint8_t max_single_stride_log_num_of_bytes;
};

struct ibv_exp_ec_caps {
  uint32_t max_ec_data_vector_count;
  uint32_t max_ec_calc_inflight_calcs;
};

struct ibv_exp_masked_atomic_params {
  uint32_t max_fa_bit_boundary;
  uint32_t log_max_atomic_inline;
  uint64_t masked_log_atomic_arg_sizes;
  uint64_t masked_log_atomic_arg_sizes_network_endianness;
};

struct ibv_exp_tso_caps {
  uint32_t max_tso;
  uint32_t supported_qpts;
};

struct ibv_exp_packet_pacing_caps {
  uint32_t qp_rate_limit_min;
  uint32_t qp_rate_limit_max;
  uint32_t supported_qpts;
  uint32_t reserved;
};

struct ibv_exp_device_attr {
  /* As ibv_device_attr. */
  char fw_ver[64];
  uint64_t node_guid; /* in network order, as the next */
  uint64_t sys_image_guid;
  uint64_t max_mr_size;
  uint64_t page_size_cap;
  uint32_t vendor_id;
  uint32_t vendor_part_id;
  uint32_t hw_ver;
  int max_qp;
  int max_qp_wr;
  int reserved; /* 0; exp_device_cap_flags has the flags */
  int max_sge;
  int max_sge_rd;
  int max_cq;
  int max_cqe;
  int max_mr;
  int max_pd;
  int max_qp_rd_atom;
  int max_ee_rd_atom;
  int max_res_rd_atom;
  int max_qp_init_rd_atom;
  int max_ee_init_rd_atom;
  enum ibv_exp_atomic_cap exp_atomic_cap;
  int max_ee;
  int max_rdd;
  int max_mw;
  int max_raw_ipv6_qp;
  int max_raw_ethy_qp;
  int max_mcast_grp;
  int max_mcast_qp_attach;
  int max_total_mcast_qp_attach;
  int max_ah;
  int max_fmr;
  int max_map_per_fmr;
  int max_srq;
  int max_srq_wr;
  int max_srq_sge;
  uint16_t max_pkeys;
  uint8_t local_ca_ack_delay;
  uint8_t phys_port_cnt;
  /* In: the groups that the caller wants. Out: those of them that are valid. */
  uint32_t comp_mask;
  struct ibv_exp_device_calc_cap calc_cap;
  uint64_t timestamp_mask;
  uint64_t hca_core_clock;       /* in kHz */
  uint64_t exp_device_cap_flags; /* enum ibv_exp_device_cap_flags */
  int max_dc_req_rd_atom;
  int max_dc_res_rd_atom;
  int inline_recv_sz;
  uint32_t max_rss_tbl_sz;
  struct ibv_exp_ext_atomics_params ext_atom;
  struct ibv_exp_umr_caps umr_caps;
  struct ibv_exp_odp_caps odp_caps;
  int max_dct;
  int max_ctx_res_domain;
  struct ibv_exp_rx_hash_caps rx_hash_caps;
  uint32_t max_wq_type_rq;
  int max_device_ctx;
  struct ibv_exp_mp_rq_caps mp_rq_caps;
  uint16_t wq_vlan_offloads_cap;
  struct ibv_exp_ec_caps ec_caps;
  struct ibv_exp_masked_atomic_params masked_atomic;
  int rx_pad_end_addr_align;
  struct ibv_exp_tso_caps tso_caps;
  struct ibv_exp_packet_pacing_caps packet_pacing_caps;
};

/* What weft_exp_query_mr_memory() tells, which is Weft's own. */
enum weft_exp_backing {
  WEFT_EXP_BASE_PAGES = 1,
  WEFT_EXP_TRANSPARENT_HUGE_PAGES = 2,
  WEFT_EXP_HUGETLB_PAGES = 3
};

struct weft_exp_mr_memory {
  enum weft_exp_backing backing;
  uint32_t block_order; /* the memory consists of blocks of 2^block_order contiguous bytes */
};

/* Where the calls are found: in front of verbs_context, in the library's memory. The table grows at
 * its front and ends with its size, so that programs and libraries of different versions find the
 * members that both know.
 *
 * A bit of the word that has been called has_comp_mask, and is _ABI_placeholder3 in rdma-core, says
 * that there is a table. Mellanox's libraries set bit 62 for a table of another layout at the same
 * place. Weft sets bit 61 and never 62, and this header looks for bit 61 alone: a binary of
 * Mellanox OFED finds no table in Weft, and a program of this header none in Mellanox's library.
 * Both get ENOSYS and call no function of the wrong type. Debian's library sets neither bit. */
#define WEFT_VERBS_CONTEXT_EXP (1ULL << 61)

struct verbs_context_exp {
  int (*query_mr_memory)(struct ibv_mr* mr, struct weft_exp_mr_memory* memory);
  int (*exp_query_device)(struct ibv_context* context, struct ibv_exp_device_attr* attr);
  struct ibv_mr* (*exp_reg_shared_mr)(struct ibv_exp_reg_shared_mr_in* in);
  struct ibv_mr* (*exp_reg_mr)(struct ibv_exp_reg_mr_in* in);
  size_t sz; /* of the library's table */
};

/* The table of a context, or null. */
static inline struct verbs_context_exp* verbs_get_exp_ctx(struct ibv_context* context) {
  struct verbs_context* verbs = verbs_get_ctx(context);
  if (verbs == NULL || (verbs->_ABI_placeholder3 & WEFT_VERBS_CONTEXT_EXP) == 0) return NULL;
  /* The library's verbs_context may be longer than this program's. */
  return (struct verbs_context_exp*)((char*)context + sizeof(struct ibv_context) - verbs->sz -
                                     sizeof(struct verbs_context_exp));
}

/* The same, if the library's table has the member that far from the front, and it is not null. */
static inline struct verbs_context_exp* weft_exp_ctx_with(struct ibv_context* context,
                                                          size_t offset) {
  struct verbs_context_exp* table = verbs_get_exp_ctx(context);
  void* member = NULL;
  if (table == NULL || table->sz < sizeof *table - offset) return NULL;
  memcpy(&member, (char*)table + offset, sizeof member);
  return member != NULL ? table : NULL;
}

#define verbs_get_exp_ctx_op(context, op) \
  weft_exp_ctx_with(context, offsetof(struct verbs_context_exp, op))

static inline int weft_exp_status(int code) {
  errno = code;
  return code;
}

static inline struct ibv_mr* weft_exp_no_mr(int code) {
  errno = code;
  return NULL;
}

/* Registers memory, or allocates and registers it. Null with errno set: ibv_exp_reg_mr(3). */
static inline struct ibv_mr* ibv_exp_reg_mr(struct ibv_exp_reg_mr_in* in) {
  struct verbs_context_exp* table;
  if (in == NULL || in->pd == NULL) return weft_exp_no_mr(EINVAL);
  table = verbs_get_exp_ctx_op(in->pd->context, exp_reg_mr);
  return table != NULL ? table->exp_reg_mr(in) : weft_exp_no_mr(ENOSYS);
}

/* Attaches to a region that another process has allocated and shares. Null with errno set:
 * ibv_exp_reg_shared_mr(3). */
static inline struct ibv_mr* ibv_exp_reg_shared_mr(struct ibv_exp_reg_shared_mr_in* in) {
  struct verbs_context_exp* table;
  if (in == NULL || in->pd == NULL) return weft_exp_no_mr(EINVAL);
  table = verbs_get_exp_ctx_op(in->pd->context, exp_reg_shared_mr);
  return table != NULL ? table->exp_reg_shared_mr(in) : weft_exp_no_mr(ENOSYS);
}

/* Fills the standard members of `attr`, and those of the valid groups among attr->comp_mask; leaves
 * all others as they are. Returns 0 or an errno value: EINVAL, ENOSYS. */
static inline int ibv_exp_query_device(struct ibv_context* context,
                                       struct ibv_exp_device_attr* attr) {
  struct verbs_context_exp* table;
  if (context == NULL || attr == NULL) return weft_exp_status(EINVAL);
  table = verbs_get_exp_ctx_op(context, exp_query_device);
  return table != NULL ? table->exp_query_device(context, attr) : weft_exp_status(ENOSYS);
}

/* Weft's own: tells which memory ibv_exp_reg_mr(3) has allocated for a region, or
 * ibv_exp_reg_shared_mr(3) has mapped. Returns 0 or an errno value: EINVAL for any other region,
 * ENOENT when the program has overwritten the region's handle, ENOSYS. */
static inline int weft_exp_query_mr_memory(struct ibv_mr* mr, struct weft_exp_mr_memory* memory) {
  struct verbs_context_exp* table;
  if (mr == NULL || memory == NULL) return weft_exp_status(EINVAL);
  table = verbs_get_exp_ctx_op(mr->context, query_mr_memory);
  return table != NULL ? table->query_mr_memory(mr, memory) : weft_exp_status(ENOSYS);
}

/* Not offered: ENOSYS. ibv_rereg_mr(3) and ibv_advise_mr(3) are. */
static inline int ibv_exp_rereg_mr(struct ibv_mr* mr, int flags, struct ibv_pd* pd, void* addr,
                                   size_t length, uint64_t access,
                                   struct ibv_exp_rereg_mr_attr* attr) {
  (void)mr, (void)flags, (void)pd, (void)addr, (void)length, (void)access, (void)attr;
  return weft_exp_status(ENOSYS);
}

static inline int ibv_exp_prefetch_mr(struct ibv_mr* mr, struct ibv_exp_prefetch_attr* attr) {
  (void)mr, (void)attr;
  return weft_exp_status(ENOSYS);
}

static inline int ibv_exp_setenv(struct ibv_context* context, const char* name, const char* value,
                                 int overwrite) {
  (void)context, (void)name, (void)value, (void)overwrite;
  return weft_exp_status(ENOSYS);
}

static inline int ibv_exp_use_priv_env(struct ibv_context* context) {
  (void)context;
  return weft_exp_status(ENOSYS);
}

#ifdef __cplusplus
}
#endif

#endif
