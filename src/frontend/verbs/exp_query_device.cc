// SPDX-License-Identifier: BSD-2-Clause
// What does a device say of itself to experimental verbs? ibv_exp_query_device in verbs_exp.h
#include <cstring>

#include "boundary.h"
#include "operations.h"

namespace weft::verbs {
namespace {

constexpr std::uint32_t kValidGroups = IBV_EXP_DEVICE_ATTR_WITH_TIMESTAMP_MASK |
                                       IBV_EXP_DEVICE_ATTR_WITH_HCA_CORE_CLOCK |
                                       IBV_EXP_DEVICE_ATTR_EXP_CAP_FLAGS | IBV_EXP_DEVICE_ATTR_ODP;

constexpr std::uint64_t kCapabilities =
    IBV_EXP_DEVICE_ODP | IBV_EXP_DEVICE_MR_ALLOCATE | IBV_EXP_DEVICE_SHARED_MR;

// The standard members lie alike, but for the flags.
constexpr std::size_t kStandardBytes = offsetof(ibv_exp_device_attr, comp_mask);
static_assert(kStandardBytes <= sizeof(ibv_device_attr));
static_assert(offsetof(ibv_exp_device_attr, reserved) ==
              offsetof(ibv_device_attr, device_cap_flags));
static_assert(offsetof(ibv_exp_device_attr, phys_port_cnt) ==
              offsetof(ibv_device_attr, phys_port_cnt));

ibv_exp_odp_caps on_demand_paging_of(const ibv_device_attr_ex& device) {
  ibv_exp_odp_caps caps{};
  if ((device.odp_caps.general_caps & IBV_ODP_SUPPORT) != 0) {
    caps.general_odp_caps = IBV_EXP_ODP_SUPPORT;
  }
  caps.per_transport_caps.rc_odp_caps = device.odp_caps.per_transport_caps.rc_odp_caps;
  caps.per_transport_caps.uc_odp_caps = device.odp_caps.per_transport_caps.uc_odp_caps;
  caps.per_transport_caps.ud_odp_caps = device.odp_caps.per_transport_caps.ud_odp_caps;
  caps.per_transport_caps.xrc_odp_caps = device.xrc_odp_caps;
  return caps;
}

}  // namespace

int exp_query_device(ibv_context* context, ibv_exp_device_attr* attributes) {
  if (attributes->comp_mask >= IBV_EXP_DEVICE_ATTR_RESERVED) return status_with(EINVAL);
  ibv_device_attr_ex device;
  if (const int error = query_device_ex(context, nullptr, &device, sizeof device); error != 0) {
    return error;
  }
  const std::uint32_t groups = attributes->comp_mask & kValidGroups;
  std::memcpy(attributes, &device.orig_attr, kStandardBytes);
  attributes->reserved = 0;
  attributes->comp_mask = groups;
  if ((groups & IBV_EXP_DEVICE_ATTR_WITH_TIMESTAMP_MASK) != 0) {
    attributes->timestamp_mask = device.completion_timestamp_mask;
  }
  if ((groups & IBV_EXP_DEVICE_ATTR_WITH_HCA_CORE_CLOCK) != 0) {
    attributes->hca_core_clock = device.hca_core_clock;
  }
  if ((groups & IBV_EXP_DEVICE_ATTR_EXP_CAP_FLAGS) != 0) {
    attributes->exp_device_cap_flags = device.orig_attr.device_cap_flags | kCapabilities;
  }
  if ((groups & IBV_EXP_DEVICE_ATTR_ODP) != 0) attributes->odp_caps = on_demand_paging_of(device);
  return 0;
}

}  // namespace weft::verbs
