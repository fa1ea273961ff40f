// SPDX-License-Identifier: BSD-2-Clause
// What is behind the rdma_cm_id of a program?
#include "cm_id.h"

#include <algorithm>
#include <cstring>

#include "wire/cm_message.h"

namespace weft::rdmacm {

CmId::CmId(std::shared_ptr<CmSpace> space, void* its_context, rdma_port_space port_space,
           ibv_qp_type type)
    : rdma_cm_id{}, space_(std::move(space)) {
  context = its_context;
  ps = port_space;
  qp_type = type;
}

Result<std::unique_ptr<CmId>> CmId::create(std::shared_ptr<CmSpace> space,
                                           std::shared_ptr<CmChannel> channel, void* context,
                                           rdma_port_space ps, ibv_qp_type type) {
  std::unique_ptr<CmId> id(new CmId(space, context, ps, type));
  if (channel == nullptr) {
    auto own = CmChannel::create(std::move(space));
    if (!own) return own.error();
    channel = std::move(own).value();
    id->is_sync = true;
  }
  id->set_channel(std::move(channel));
  return id;
}

CmId::~CmId() {
  if (is_sync) channel_->of_program.reset();
}

void CmId::set_channel(std::shared_ptr<CmChannel> to) {
  channel_ = std::move(to);
  channel = channel_.get();
}

void CmId::bind_to(const LocalGid& to) {
  local = to;
  verbs = to.device->context;
  port_num = kPort;
  pd = to.pd;
  route.addr.addr.ibaddr.sgid = to.gid;
  route.addr.addr.ibaddr.pkey = kPkey;
}

void CmId::set_source(const os::SocketAddress& address) {
  std::memcpy(&route.addr.src_storage, address.get(), address.length());
}

void CmId::set_destination(const os::SocketAddress& address) {
  std::memcpy(&route.addr.dst_storage, address.get(), address.length());
}

os::SocketAddress CmId::source() const {
  const auto address =
      os::SocketAddress::parse(&route.addr.src_storage, sizeof route.addr.src_storage);
  return address ? address.value() : os::SocketAddress();
}

os::SocketAddress CmId::destination() const {
  const auto address =
      os::SocketAddress::parse(&route.addr.dst_storage, sizeof route.addr.dst_storage);
  return address ? address.value() : os::SocketAddress();
}

std::uint64_t CmId::service() const {
  return wire::service_of(static_cast<std::uint16_t>(ps), source().port());
}

ibv_ah_attr CmId::address_of_peer() const {
  ibv_ah_attr address{};
  address.is_global = 1;
  address.port_num = kPort;
  address.grh.dgid = terms.peer_gid;
  address.grh.flow_label = terms.flow_label;
  address.grh.sgid_index = local.index;
  address.grh.hop_limit = kHopLimit;
  address.grh.traffic_class = terms.traffic_class;
  return address;
}

void CmId::limit_depths() {
  const CmDevice& device = *local.device;
  terms.initiator_depth = std::min(terms.initiator_depth, device.initiator_depth);
  terms.responder_resources = std::min(terms.responder_resources, device.responder_resources);
}

void CmId::set_route(const ibv_gid& peer) {
  route.addr.addr.ibaddr.dgid = peer;
  path = std::make_unique<ibv_sa_path_rec>();
  path->dgid = peer;
  path->sgid = local.gid;
  path->hop_limit = kHopLimit;
  path->traffic_class = options.traffic_class;
  path->reversible = 1;
  path->numb_path = 1;
  path->pkey = kPkey;
  path->mtu_selector = 2;  // exactly
  path->mtu = local.mtu;
  path->rate_selector = 2;
  path->rate = IBV_RATE_40_GBPS;
  path->packet_life_time_selector = 2;
  path->packet_life_time = 16;
  route.path_rec = path.get();
  route.num_paths = 1;
}

}  // namespace weft::rdmacm
