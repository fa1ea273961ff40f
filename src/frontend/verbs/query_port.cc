// SPDX-License-Identifier: BSD-2-Clause
// What does the port of a device say of itself? ibv_query_port(3), ibv_query_pkey(3)

#include <algorithm>
#include <cstring>

#include "boundary.h"
#include "context.h"
#include "operations.h"
#include "port_number.h"
#include "verbs/limits.h"

namespace weft::verbs {
namespace {

constexpr std::uint8_t kLinkUp = 5;             // PortPhysicalState (InfiniBand, PortInfo)
constexpr std::uint8_t kFourLanes = 2;          // LinkWidthActive
constexpr std::uint8_t kEdrLane = 32;           // LinkSpeedExtActive: 25.8 Gb/s
constexpr std::uint16_t kDefaultPkey = 0xFFFF;  // alike in every byte order
// The structure of programs that call the exported function: without port_cap_flags2.
constexpr std::size_t kOldSize = offsetof(ibv_port_attr, port_cap_flags2);
static_assert(kOldSize == 48);

ibv_port_attr port_attributes_of(const DeviceState& device) {
  ibv_port_attr a{};
  a.state = IBV_PORT_ACTIVE;  // of the interfaces that are offered
  a.max_mtu = IBV_MTU_4096;
  a.active_mtu = mtu_of(most_path_mtu(device));
  a.gid_tbl_len = static_cast<int>(device.gids.size());
  a.port_cap_flags = IBV_PORT_CM_SUP | IBV_PORT_IP_BASED_GIDS;
  a.max_msg_sz = Limits::kMessageBytes;
  a.pkey_tbl_len = 1;
  a.max_vl_num = 1;
  a.active_width = kFourLanes;
  a.active_speed = kEdrLane;
  a.phys_state = kLinkUp;
  a.link_layer = IBV_LINK_LAYER_ETHERNET;
  a.flags = IBV_QPF_GRH_REQUIRED;
  return a;
}

}  // namespace

int query_port(ibv_context* context, std::uint8_t port, ibv_port_attr* attributes,
               std::size_t size) {
  if (!is_port(port) || attributes == nullptr) return status_with(EINVAL);
  const ibv_port_attr a = port_attributes_of(VerbsContext::of(context).device());
  std::memset(attributes, 0, size);
  std::memcpy(attributes, &a, std::min(size, sizeof a));
  return 0;
}

}  // namespace weft::verbs

int ibv_query_port(ibv_context* context, std::uint8_t port_num,
                   struct _compat_ibv_port_attr* port_attr) {
  return weft::verbs::query_port(context, port_num, reinterpret_cast<ibv_port_attr*>(port_attr),
                                 weft::verbs::kOldSize);
}

int ibv_query_pkey(ibv_context*, std::uint8_t port_num, int index, __be16* pkey) {
  if (!weft::verbs::is_port(port_num) || index != 0 || pkey == nullptr) {
    return weft::verbs::minus_one_with(EINVAL);
  }
  *pkey = weft::verbs::kDefaultPkey;
  return 0;
}

int ibv_get_pkey_index(ibv_context*, std::uint8_t port_num, __be16 pkey) {
  if (!weft::verbs::is_port(port_num) || pkey != weft::verbs::kDefaultPkey) {
    return weft::verbs::minus_one_with(EINVAL);
  }
  return 0;
}
