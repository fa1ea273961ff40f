// SPDX-License-Identifier: BSD-2-Clause
// Address handles: ibv_create_ah(3), ibv_create_ah_from_wc(3)
#include <netinet/in.h>

#include <cerrno>
#include <cstring>

#include "boundary.h"
#include "gid.h"
#include "qp.h"

namespace weft::verbs {
namespace {

ibv_ah* create_ah(ibv_pd* pd, const ibv_ah_attr& attribute) {
  return at_c_border<ibv_ah>([&]() -> ibv_ah* {
    if (pd == nullptr) return refuse<ibv_ah>(EINVAL);
    auto address = address_of(pd->context, attribute);
    if (!address) return refuse<ibv_ah>(errno_of(address.error()));
    auto handle = std::make_unique<VerbsAh>();
    handle->domain = UseOf<VerbsPd>(object_of(pd));
    handle->address = std::make_unique<queue::AddressHandle>(object_of(pd).domain, address.value());
    handle->context = pd->context;
    handle->pd = pd;
    return handle.release();
  });
}

int destroy_ah(ibv_ah* ah) {
  if (ah == nullptr) return EINVAL;
  VerbsAh& handle = object_of(ah);
  if (const int error = check_handle(handle, handle.pd->context); error != 0) return error;
  delete &handle;
  return 0;
}

// The GIDs of a received datagram: its source becomes the destination.
struct Gids {
  ibv_gid source;
  ibv_gid destination;
};

Gids gids_of(const ibv_grh& grh) {
  constexpr std::size_t kIpv4At = 20;
  const auto* bytes = reinterpret_cast<const unsigned char*>(&grh);
  Gids found{};
  if (bytes[kIpv4At] >> 4 == 4 && bytes[0] >> 4 != 6) {
    found.source.raw[10] = found.source.raw[11] = 0xFF;
    found.destination.raw[10] = found.destination.raw[11] = 0xFF;
    std::memcpy(found.source.raw + 12, bytes + kIpv4At + 12, 4);
    std::memcpy(found.destination.raw + 12, bytes + kIpv4At + 16, 4);
  } else {
    std::memcpy(&found.source, bytes + 8, sizeof found.source);
    std::memcpy(&found.destination, bytes + 24, sizeof found.destination);
  }
  return found;
}

int init_from_wc(ibv_context* context, std::uint8_t port, const ibv_wc& wc, const ibv_grh* grh,
                 ibv_ah_attr& attribute) {
  attribute = {};
  attribute.port_num = port;
  if ((wc.wc_flags & IBV_WC_GRH) == 0 || grh == nullptr) {
    errno = EINVAL;
    return -1;
  }
  const Gids gids = gids_of(*grh);
  const int index = VerbsContext::of(context).index_of(gids.destination);
  if (index < 0) {
    errno = ENODATA;
    return -1;
  }
  attribute.is_global = 1;
  attribute.grh.dgid = gids.source;
  attribute.grh.sgid_index = static_cast<std::uint8_t>(index);
  attribute.grh.hop_limit = 64;
  return 0;
}

}  // namespace

Result<queue::QpAddress> address_of(ibv_context* context, const ibv_ah_attr& attribute) {
  const auto refused = [](const char* why) { return Error{EINVAL, why}; };
  if (attribute.is_global == 0) return refused("RoCE needs a global routing header");
  if (attribute.port_num > 1) return refused("the only port is 1");
  const auto local = VerbsContext::of(context).gid_address(attribute.grh.sgid_index);
  if (!local) return refused("no GID has that index");
  queue::QpAddress address;
  address.local = *local;
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
    attribute.grh.dgid = gid_of(address.remote);
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
                              : weft::verbs::refuse<ibv_ah>(EINVAL);
}
int ibv_destroy_ah(ibv_ah* ah) { return weft::verbs::destroy_ah(ah); }
int ibv_init_ah_from_wc(ibv_context* context, std::uint8_t port, ibv_wc* wc, ibv_grh* grh,
                        ibv_ah_attr* attribute) {
  return weft::verbs::init_from_wc(context, port, *wc, grh, *attribute);
}
ibv_ah* ibv_create_ah_from_wc(ibv_pd* pd, ibv_wc* wc, ibv_grh* grh, std::uint8_t port) {
  ibv_ah_attr attribute{};
  if (weft::verbs::init_from_wc(pd->context, port, *wc, grh, attribute) != 0) return nullptr;
  return weft::verbs::create_ah(pd, attribute);
}

}  // extern "C"
