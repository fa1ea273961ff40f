// SPDX-License-Identifier: BSD-2-Clause
// To which address does a reply to a datagram go? ibv_init_ah_from_wc(3)
#include <array>
#include <cstring>

#include "boundary.h"
#include "context.h"
#include "port_number.h"

namespace weft::verbs {
namespace {

constexpr std::size_t kIpv4Header = 20;
constexpr std::uint32_t kFlowLabelMask = 0xFFFFF;

using GrhBytes = std::array<std::uint8_t, sizeof(ibv_grh)>;

// Where a datagram came from and went to.
struct Ends {
  GidBytes source{};
  GidBytes destination{};
  std::uint8_t traffic_class = 0;
  std::uint32_t flow_label = 0;
};

// RFC 1071: the sum over a header with its checksum has all bits set.
bool has_right_checksum(const std::uint8_t* header) {
  std::uint32_t sum = 0;
  for (std::size_t i = 0; i < kIpv4Header; i += 2) sum += header[i] << 8U | header[i + 1];
  sum = (sum & 0xFFFF) + (sum >> 16);
  return (sum & 0xFFFF) + (sum >> 16) == 0xFFFF;
}

GidBytes mapped(const std::uint8_t* address) {
  GidBytes gid{};
  gid[10] = gid[11] = 0xFF;
  std::memcpy(gid.data() + 12, address, 4);
  return gid;
}

// The 40 octets in front of a datagram: an IPv6 header, or 20 that say nothing and an IPv4 header.
Ends ends_of(const GrhBytes& header) {
  const std::uint8_t* const v4 = header.data() + sizeof(ibv_grh) - kIpv4Header;
  if (v4[0] == 0x45 && has_right_checksum(v4)) {
    return {mapped(v4 + 12), mapped(v4 + 16), v4[1], 0};
  }
  Ends ends;
  std::memcpy(ends.source.data(), header.data() + 8, 16);
  std::memcpy(ends.destination.data(), header.data() + 24, 16);
  const std::uint32_t first =
      static_cast<std::uint32_t>(header[0]) << 24 | header[1] << 16 | header[2] << 8 | header[3];
  ends.traffic_class = static_cast<std::uint8_t>(first >> 20);
  ends.flow_label = first & kFlowLabelMask;
  return ends;
}

}  // namespace
}  // namespace weft::verbs

int ibv_init_ah_from_wc(ibv_context* context, std::uint8_t port_num, ibv_wc* wc, ibv_grh* grh,
                        ibv_ah_attr* ah_attr) {
  using namespace weft::verbs;
  if (!is_port(port_num) || (wc->wc_flags & IBV_WC_GRH) == 0) return minus_one_with(EINVAL);
  GrhBytes header;
  std::memcpy(header.data(), grh, header.size());
  const Ends ends = ends_of(header);
  const int index = DeviceContext::of(context).device().gids.index_of(ends.destination);
  if (index < 0) return minus_one_with(EINVAL);
  *ah_attr = {};
  std::memcpy(ah_attr->grh.dgid.raw, ends.source.data(), ends.source.size());
  ah_attr->grh.sgid_index = static_cast<std::uint8_t>(index);
  ah_attr->grh.hop_limit = 0xFF;
  ah_attr->grh.flow_label = ends.flow_label;
  ah_attr->grh.traffic_class = ends.traffic_class;
  ah_attr->is_global = 1;
  ah_attr->dlid = wc->slid;
  ah_attr->sl = wc->sl;
  ah_attr->src_path_bits = wc->dlid_path_bits;
  ah_attr->port_num = port_num;
  return 0;
}

// Which Ethernet address a packet goes to is the network's business here. There is no VLAN.
int ibv_resolve_eth_l2_from_gid(ibv_context* context, ibv_ah_attr*,
                                std::uint8_t eth_mac[ETHERNET_LL_SIZE], std::uint16_t* vid) {
  constexpr std::uint16_t kNoVlan = 0xFFFF;
  const auto& own = weft::verbs::DeviceContext::of(context).device().hardware_address;
  std::memcpy(eth_mac, own.data(), own.size());
  if (vid != nullptr) *vid = kNoVlan;
  return 0;
}
