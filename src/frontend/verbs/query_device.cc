// SPDX-License-Identifier: BSD-2-Clause
// What does a device say of itself? ibv_query_device(3), ibv_query_device_ex(3)
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>

#include "boundary.h"
#include "context.h"
#include "operations.h"
#include "verbs/limits.h"

namespace weft::verbs {
namespace {

// A locally administered OUI: of no vendor, so that no program takes the device for one that it
// knows.
constexpr std::uint32_t kVendor = 0x02'77'66;
constexpr std::uint32_t kPart = 1;
constexpr std::uint64_t kAnyPageSize = 0xFFFF'F000;
constexpr std::uint8_t kAckDelay = 15;  // 4.096 us * 2^15 = 134 ms, as rdma_rxe
constexpr std::uint64_t kNanosecondClockKhz = 1'000'000;

ibv_device_attr device_attributes_of(const DeviceState& device) {
  ibv_device_attr a{};
  std::snprintf(a.fw_ver, sizeof a.fw_ver, "%s", WEFT_VERSION);
  a.node_guid = a.sys_image_guid = __builtin_bswap64(device.guid);
  a.max_mr_size = ~std::uint64_t{0};
  a.page_size_cap = kAnyPageSize;
  a.vendor_id = kVendor;
  a.vendor_part_id = kPart;
  a.hw_ver = 1;
  a.max_qp = Limits::kQps;
  a.max_qp_wr = Limits::kWorkRequests;
  a.device_cap_flags = IBV_DEVICE_CURR_QP_STATE_MOD | IBV_DEVICE_SYS_IMAGE_GUID |
                       IBV_DEVICE_RC_RNR_NAK_GEN | IBV_DEVICE_SRQ_RESIZE | IBV_DEVICE_XRC;
  a.max_sge = a.max_sge_rd = Limits::kSges;
  a.max_cq = Limits::kCqs;
  a.max_cqe = Limits::kCqes;
  a.max_mr = Limits::kMrs;
  a.max_pd = Limits::kPds;
  a.max_qp_rd_atom = a.max_qp_init_rd_atom = Limits::kReadsAndAtomics;
  a.max_res_rd_atom = Limits::kReadsAndAtomics * Limits::kQps;
  a.atomic_cap = IBV_ATOMIC_HCA;
  a.max_ah = Limits::kAhs;
  a.max_srq = Limits::kSrqs;
  a.max_srq_wr = Limits::kWorkRequests;
  a.max_srq_sge = Limits::kSges;
  a.max_pkeys = 1;
  a.local_ca_ack_delay = kAckDelay;
  a.phys_port_cnt = 1;
  return a;
}

// Memory is used through virtual addresses anyway, whether its pages are there or not.
void describe_on_demand_paging(ibv_device_attr_ex& a) {
  constexpr std::uint32_t kUnconnected =
      IBV_ODP_SUPPORT_SEND | IBV_ODP_SUPPORT_RECV | IBV_ODP_SUPPORT_SRQ_RECV;
  constexpr std::uint32_t kReliable =
      kUnconnected | IBV_ODP_SUPPORT_WRITE | IBV_ODP_SUPPORT_READ | IBV_ODP_SUPPORT_ATOMIC;
  a.odp_caps.general_caps = IBV_ODP_SUPPORT | IBV_ODP_SUPPORT_IMPLICIT;
  a.odp_caps.per_transport_caps.rc_odp_caps = kReliable;
  a.odp_caps.per_transport_caps.uc_odp_caps = kUnconnected | IBV_ODP_SUPPORT_WRITE;
  a.odp_caps.per_transport_caps.ud_odp_caps = kUnconnected;
  a.xrc_odp_caps = kReliable;
}

}  // namespace

// Programs of other headers have shorter or longer structures.
int query_device_ex(ibv_context* context, const ibv_query_device_ex_input* input,
                    ibv_device_attr_ex* attributes, std::size_t size) {
  if (attributes == nullptr || size < sizeof(ibv_device_attr)) return status_with(EINVAL);
  if (input != nullptr && input->comp_mask != 0) return status_with(EINVAL);
  ibv_device_attr_ex a{};
  a.orig_attr = device_attributes_of(VerbsContext::of(context).device());
  describe_on_demand_paging(a);
  a.completion_timestamp_mask = ~std::uint64_t{0};
  a.hca_core_clock = kNanosecondClockKhz;
  a.device_cap_flags_ex = a.orig_attr.device_cap_flags;
  a.cq_mod_caps = {UINT16_MAX, UINT16_MAX};
  a.phys_port_cnt_ex = 1;
  std::memset(attributes, 0, size);
  std::memcpy(attributes, &a, std::min(size, sizeof a));
  return 0;
}

// The clock of completion timestamps, in nanoseconds.
int query_rt_values(ibv_context*, ibv_values_ex* values) {
  if ((values->comp_mask & ~std::uint32_t{IBV_VALUES_MASK_RAW_CLOCK}) != 0) {
    return status_with(EINVAL);
  }
  if ((values->comp_mask & IBV_VALUES_MASK_RAW_CLOCK) != 0) {
    values->raw_clock = {0, std::chrono::steady_clock::now().time_since_epoch().count()};
  }
  return 0;
}

}  // namespace weft::verbs

int ibv_query_device(ibv_context* context, ibv_device_attr* device_attr) {
  if (device_attr == nullptr) return weft::verbs::status_with(EINVAL);
  *device_attr = weft::verbs::device_attributes_of(weft::verbs::VerbsContext::of(context).device());
  return 0;
}
