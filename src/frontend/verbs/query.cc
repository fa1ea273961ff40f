// SPDX-License-Identifier: BSD-2-Clause
// What can the device do? ibv_query_device(3), ibv_query_port(3), ibv_query_gid(3)
#include "query.h"

#include <cerrno>
#include <cstring>

#include "context.h"
#include "objects.h"

#undef ibv_query_port

namespace weft::verbs {
namespace {

ibv_mtu mtu_of(std::size_t bytes) {
  unsigned code = IBV_MTU_256;
  while (code < IBV_MTU_4096 && (std::size_t{128} << (code + 1)) <= bytes) ++code;
  return static_cast<ibv_mtu>(code);
}

ibv_port_attr port_of(ibv_context* context) {
  const VerbsContext& device = VerbsContext::of(context);
  ibv_port_attr port{};
  port.state = IBV_PORT_ACTIVE;
  port.max_mtu = IBV_MTU_4096;
  port.active_mtu = mtu_of(device.most_mtu());
  port.gid_tbl_len = static_cast<int>(device.shown_device().addresses.size());
  port.port_cap_flags = IBV_PORT_CM_SUP;
  port.max_msg_sz = 1u << 31;
  port.pkey_tbl_len = 1;
  port.active_width = 2;
  port.active_speed = 32;
  port.phys_state = 5;
  port.link_layer = IBV_LINK_LAYER_ETHERNET;
  return port;
}

ibv_device_attr device_of(ibv_context* context) {
  ibv_device_attr found{};
  std::strcpy(found.fw_ver, "0.1.0");
  found.node_guid = found.sys_image_guid = VerbsContext::of(context).shown_device().guid;
  found.max_mr_size = ~std::uint64_t{0};
  found.page_size_cap = 0xFFFF'F000;
  found.vendor_id = 0x5746;
  found.vendor_part_id = 1;
  found.hw_ver = 1;
  found.max_qp = 65'536;
  found.max_qp_wr = static_cast<int>(queue::kMaxWorkRequests);
  found.device_cap_flags = IBV_DEVICE_RC_RNR_NAK_GEN | IBV_DEVICE_XRC | IBV_DEVICE_SRQ_RESIZE |
                           IBV_DEVICE_SYS_IMAGE_GUID;
  found.max_sge = found.max_sge_rd = static_cast<int>(queue::kMaxSges);
  found.max_cq = 65'536;
  found.max_cqe = static_cast<int>(queue::kMaxCompletions);
  found.max_mr = 1 << 21;
  found.max_pd = 65'536;
  found.max_qp_rd_atom = found.max_qp_init_rd_atom = queue::kMaxReads;
  found.max_res_rd_atom = found.max_qp_rd_atom * found.max_qp;
  found.atomic_cap = IBV_ATOMIC_HCA;
  found.max_ah = 65'536;
  found.max_srq = 65'536;
  found.max_srq_wr = static_cast<int>(queue::kMaxWorkRequests);
  found.max_srq_sge = static_cast<int>(queue::kMaxSges);
  found.max_pkeys = 1;
  found.local_ca_ack_delay = 15;
  found.phys_port_cnt = 1;
  return found;
}

}  // namespace

int query_port(ibv_context* context, std::uint8_t port, ibv_port_attr* found, std::size_t size) {
  if (port != 1) return EINVAL;
  const ibv_port_attr all = port_of(context);
  std::memcpy(found, &all, std::min(size, sizeof all));
  return 0;
}

int query_device_ex(ibv_context* context, const ibv_query_device_ex_input* input,
                    ibv_device_attr_ex* found, std::size_t size) {
  if (input != nullptr && input->comp_mask != 0) return EINVAL;
  ibv_device_attr_ex all{};
  all.orig_attr = device_of(context);
  all.completion_timestamp_mask = ~std::uint64_t{0};
  all.hca_core_clock = 1'000'000;
  all.phys_port_cnt_ex = 1;
  constexpr std::uint32_t kAll = IBV_ODP_SUPPORT_SEND | IBV_ODP_SUPPORT_RECV |
                                 IBV_ODP_SUPPORT_WRITE | IBV_ODP_SUPPORT_READ |
                                 IBV_ODP_SUPPORT_ATOMIC | IBV_ODP_SUPPORT_SRQ_RECV;
  all.odp_caps.general_caps = IBV_ODP_SUPPORT | IBV_ODP_SUPPORT_IMPLICIT;
  all.odp_caps.per_transport_caps = {kAll, kAll, kAll};
  all.xrc_odp_caps = kAll;
  std::memset(found, 0, size);
  std::memcpy(found, &all, std::min(size, sizeof all));
  return 0;
}

}  // namespace weft::verbs

using weft::verbs::VerbsContext;

extern "C" {

int ibv_query_device(ibv_context* context, ibv_device_attr* found) {
  *found = weft::verbs::device_of(context);
  return 0;
}
int ibv_query_port(ibv_context* context, std::uint8_t port, _compat_ibv_port_attr* found) {
  constexpr std::size_t kOldSize = 48;
  return weft::verbs::query_port(context, port, reinterpret_cast<ibv_port_attr*>(found), kOldSize);
}
int ibv_query_gid(ibv_context* context, std::uint8_t port, int index, ibv_gid* gid) {
  const auto address = port == 1 && index >= 0
                           ? VerbsContext::of(context).gid_address(static_cast<unsigned>(index))
                           : std::nullopt;
  if (!address) {
    errno = EINVAL;
    return -1;
  }
  *gid = weft::verbs::gid_of(*address);
  return 0;
}
int ibv_query_pkey(ibv_context*, std::uint8_t port, int index, __be16* pkey) {
  if (port != 1 || index != 0) {
    errno = EINVAL;
    return -1;
  }
  *pkey = 0xFFFF;
  return 0;
}

}  // extern "C"
