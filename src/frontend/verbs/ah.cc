// SPDX-License-Identifier: BSD-2-Clause
// Address handles: ibv_create_ah(3), ibv_create_ah_from_wc(3)
#include <cerrno>
#include <cstring>

#include "boundary.h"
#include "qp.h"
#include "verbs/gid_table.h"

namespace weft::verbs {
namespace {

ibv_ah* create_ah(ibv_pd* pd, const ibv_ah_attr& attribute) {
  return at_c_border<ibv_ah>([&]() -> ibv_ah* {
    if (pd == nullptr) return null_with(EINVAL);
    if (const int error = check_handle(object_of(pd)); error != 0) return null_with(error);
    auto address = address_of(pd->context, attribute);
    if (!address) return null_with(errno_of(address.error()));
    auto handle = std::make_unique<VerbsAh>(pd->context);
    handle->domain = UseOf<VerbsPd>(object_of(pd));
    handle->address = std::make_unique<queue::AddressHandle>(object_of(pd).domain, address.value());
    handle->pd = pd;
    return handle.release();
  });
}

int destroy_ah(ibv_ah* ah) {
  if (ah == nullptr) return EINVAL;
  VerbsAh& handle = object_of(ah);
  if (const int error = check_handle(handle); error != 0) return error;
  delete &handle;
  return 0;
}

os::SocketAddress address_of_gid(const ibv_gid& gid) {
  constexpr unsigned char kMapped[12] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xFF, 0xFF};
  if (std::memcmp(gid.raw, kMapped, sizeof kMapped) == 0) {
    return os::SocketAddress::of_host(AF_INET, gid.raw + sizeof kMapped, 0);
  }
  return os::SocketAddress::of_host(AF_INET6, gid.raw, 0);
}

}  // namespace

Result<queue::QpAddress> address_of(ibv_context* context, const ibv_ah_attr& attribute) {
  const auto refused = [](const char* why) { return Error{EINVAL, why}; };
  if (attribute.is_global == 0) return refused("RoCE needs a global routing header");
  if (attribute.port_num > 1) return refused("the only port is 1");
  const OwnGid* const local =
      VerbsContext::of(context).device().gids.find(attribute.grh.sgid_index);
  if (local == nullptr) return refused("no GID has that index");
  queue::QpAddress address;
  address.local = local->address;
  address.remote = address_of_gid(attribute.grh.dgid);
  if (address.remote.is_any()) return refused("the destination GID is zero");
  if (address.remote.family() != address.local.family()) {
    return refused("source and destination GID are of different families");
  }
  address.flow_label = attribute.grh.flow_label;
  address.source_index = attribute.grh.sgid_index;
  address.hop_limit = attribute.grh.hop_limit;
  address.traffic_class = attribute.grh.traffic_class;
  address.service_level = attribute.sl;
  address.port = attribute.port_num;
  address.lid = attribute.dlid;
  address.path_bits = attribute.src_path_bits;
  address.static_rate = attribute.static_rate;
  return address;
}

void write_address(const queue::QpAddress& address, ibv_ah_attr& attribute) {
  attribute = {};
  if (address.remote.length() != 0) {
    attribute.is_global = 1;
    const GidBytes gid = gid_of(address.remote);
    std::memcpy(attribute.grh.dgid.raw, gid.data(), gid.size());
  }
  attribute.grh.flow_label = address.flow_label;
  attribute.grh.sgid_index = address.source_index;
  attribute.grh.hop_limit = address.hop_limit;
  attribute.grh.traffic_class = address.traffic_class;
  attribute.sl = address.service_level;
  attribute.port_num = address.port;
  attribute.dlid = address.lid;
  attribute.src_path_bits = address.path_bits;
  attribute.static_rate = address.static_rate;
}

}  // namespace weft::verbs

extern "C" {

ibv_ah* ibv_create_ah(ibv_pd* pd, ibv_ah_attr* attribute) {
  return attribute != nullptr ? weft::verbs::create_ah(pd, *attribute)
                              : weft::verbs::null_with(EINVAL);
}
int ibv_destroy_ah(ibv_ah* ah) { return weft::verbs::destroy_ah(ah); }
ibv_ah* ibv_create_ah_from_wc(ibv_pd* pd, ibv_wc* wc, ibv_grh* grh, std::uint8_t port) {
  ibv_ah_attr attribute{};
  if (ibv_init_ah_from_wc(pd->context, port, wc, grh, &attribute) != 0) return nullptr;
  return weft::verbs::create_ah(pd, attribute);
}

}  // extern "C"
