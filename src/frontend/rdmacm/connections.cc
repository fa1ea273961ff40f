// SPDX-License-Identifier: BSD-2-Clause
// How are connections made and ended? (rdma_connect(3), rdma_accept(3), rdma_disconnect(3))
#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#include <span>
#include <utility>

#include "boundary.h"
#include "cm_space.h"
#include "events.h"
#include "pair_states.h"
#include "wire/cm_message.h"

namespace weft::rdmacm {
namespace {

constexpr std::uint8_t kMostRetries = 7;
constexpr std::uint8_t kResponseTimeout = 20;  // 4.3 s, as with Linux
constexpr std::uint8_t kMostRepetitions = 15;
constexpr std::uint8_t kXrc = 1;

std::span<const std::byte> bytes_of(const void* data, std::size_t length) {
  return {static_cast<const std::byte*>(data), data == nullptr ? 0 : length};
}

template <std::size_t kBytes>
Status fill(wire::PrivateData<kBytes>& field, std::size_t from, std::span<const std::byte> data) {
  if (data.size() > kBytes - from) return Error{EINVAL, "private data that do not fit"};
  std::ranges::copy(data, field.begin() + static_cast<std::ptrdiff_t>(from));
  return {};
}

wire::Gid gid_bytes(const ibv_gid& gid) {
  wire::Gid bytes{};
  std::memcpy(bytes.data(), gid.raw, bytes.size());
  return bytes;
}

// IPv4 stands in the last four bytes, after zeros.
wire::Gid host_in_header(const os::SocketAddress& address) {
  wire::Gid bytes{};
  const std::span<const std::byte> host = address.host_bytes();
  std::ranges::copy(host, bytes.end() - static_cast<std::ptrdiff_t>(host.size()));
  return bytes;
}

wire::CmIpHeader header_of(const CmId& id) {
  wire::CmIpHeader header;
  header.ip_version = id.source().family() == AF_INET ? 4 : 6;
  header.source_port = id.source().port();
  header.source = host_in_header(id.source());
  header.destination = host_in_header(id.destination());
  return header;
}

std::uint64_t service_of(const CmId& id) {
  return wire::service_of(static_cast<std::uint16_t>(id.ps), id.destination().port());
}

template <std::size_t kBytes>
Status fill_behind_header(const CmId& id, wire::PrivateData<kBytes>& field,
                          std::span<const std::byte> data) {
  const std::span<std::byte, kBytes> all = field;
  wire::write_ip_header(header_of(id), all.template first<wire::CmIpHeader::kBytes>());
  // rdma_getaddrinfo(3): ai_connect, with the private data of the program behind.
  const auto first = bytes_of(id.connect_data.get(), id.connect_length);
  if (Status fits = fill(field, wire::CmIpHeader::kBytes, first); !fits) return fits;
  return fill(field, wire::CmIpHeader::kBytes + first.size(), data);
}

// The parameters of the program, or else the most that the device allows.
Status choose(CmId& id, const rdma_conn_param* parameters, rdma_conn_param& chosen) {
  const CmDevice& device = *id.local.device;
  chosen = {};
  chosen.retry_count = kMostRetries;
  chosen.rnr_retry_count = kMostRetries;
  chosen.initiator_depth = device.initiator_depth;
  chosen.responder_resources = device.responder_resources;
  if (parameters != nullptr) {
    chosen = *parameters;
    if (chosen.initiator_depth == RDMA_MAX_INIT_DEPTH) {
      chosen.initiator_depth = device.initiator_depth;
    }
    if (chosen.responder_resources == RDMA_MAX_RESP_RES) {
      chosen.responder_resources = device.responder_resources;
    }
  }
  if (id.qp != nullptr) {
    chosen.qp_num = id.qp->qp_num;
    chosen.srq = id.qp->srq != nullptr ? 1 : 0;
  }
  if (chosen.initiator_depth > device.initiator_depth ||
      chosen.responder_resources > device.responder_resources) {
    return Error{EINVAL, "more outstanding reads than the device has"};
  }
  chosen.retry_count = std::min(chosen.retry_count, kMostRetries);
  chosen.rnr_retry_count = std::min(chosen.rnr_retry_count, kMostRetries);
  return {};
}

// The path of both ends, in the view of this one.
wire::CmPath path_of(const CmId& id) {
  wire::CmPath path;
  path.local_lid = path.remote_lid = 0xFFFF;
  path.local_gid = gid_bytes(id.local.gid);
  path.remote_gid = gid_bytes(id.terms.peer_gid);
  path.flow_label = id.terms.flow_label;
  path.traffic_class = id.options.traffic_class;
  path.hop_limit = kHopLimit;
  path.service_level = id.options.traffic_class >> 5;
  path.local_ack_timeout = id.terms.ack_timeout;
  return path;
}

// As Linux makes it of both ports.
std::uint32_t flow_label_of(const CmId& id) {
  constexpr std::uint32_t kMask = 0xF'FFFF;
  return (std::uint32_t{id.source().port()} * 31 + id.destination().port()) & kMask;
}

Status send_req(CmId& id, const rdma_conn_param& chosen) {
  ConnectionTerms& terms = id.terms;
  terms = {};
  terms.own_psn = id.manager->new_psn();
  terms.peer_gid = id.route.addr.addr.ibaddr.dgid;
  terms.mtu = id.local.mtu;
  terms.flow_label = flow_label_of(id);
  terms.traffic_class = id.options.traffic_class;
  terms.responder_resources = chosen.responder_resources;
  terms.initiator_depth = chosen.initiator_depth;
  terms.retry_count = chosen.retry_count;
  terms.ack_timeout = id.options.ack_timeout != 0 ? id.options.ack_timeout : kUsualAckTimeout;
  wire::CmReq req;
  req.service = service_of(id);
  req.qpn = chosen.qp_num;
  req.responder_resources = chosen.responder_resources;
  req.initiator_depth = chosen.initiator_depth;
  req.remote_response_timeout = req.local_response_timeout = kResponseTimeout;
  req.transport = transport_of(id.qp_type);
  req.extended_transport = req.transport == kExtendedTransport ? kXrc : 0;
  req.flow_control = chosen.flow_control != 0;
  req.starting_psn = terms.own_psn;
  req.retry_count = chosen.retry_count;
  req.pkey = kPkey;
  req.path_mtu = static_cast<std::uint8_t>(terms.mtu);
  req.rnr_retry = chosen.rnr_retry_count;
  req.max_cm_retries = kMostRepetitions;
  req.shared_receive = chosen.srq != 0;
  req.primary = path_of(id);
  const auto data = bytes_of(chosen.private_data, chosen.private_data_len);
  if (Status fits = fill_behind_header(id, req.data, data); !fits) return fits;
  return id.manager->connect(id, req);
}

Status send_query(CmId& id, const rdma_conn_param& chosen) {
  id.terms = {};
  id.terms.peer_gid = id.route.addr.addr.ibaddr.dgid;
  id.terms.traffic_class = id.options.traffic_class;
  wire::CmSidrReq query;
  query.pkey = kPkey;
  query.service = service_of(id);
  const auto data = bytes_of(chosen.private_data, chosen.private_data_len);
  if (Status fits = fill_behind_header(id, query.data, data); !fits) return fits;
  return id.manager->resolve(id, query);
}

Status connect(CmId& id, const rdma_conn_param* parameters) {
  {
    const MutexLock guard(id.space().lock());
    if (id.state != IdState::kRouteResolved) return Error{EINVAL, "the route is not resolved"};
    if (!id.has_datagrams() && id.qp == nullptr && parameters == nullptr) {
      return Error{EINVAL, "neither a queue pair nor parameters"};
    }
    rdma_conn_param chosen;
    if (Status fits = choose(id, parameters, chosen); !fits) return fits;
    Status sent = id.has_datagrams() ? send_query(id, chosen) : send_req(id, chosen);
    if (!sent) return sent;
    id.state = IdState::kConnecting;
  }
  return await(id);
}

Status answer_query(CmId& id, const rdma_conn_param* parameters) {
  wire::CmSidrRep reply;
  if (id.qp == nullptr && parameters == nullptr) return Error{EINVAL, "no queue pair"};
  reply.qpn = id.qp != nullptr ? id.qp->qp_num : parameters->qp_num;
  reply.queue_key = RDMA_UDP_QKEY;
  if (parameters != nullptr) {
    const auto data = bytes_of(parameters->private_data, parameters->private_data_len);
    if (Status fits = fill(reply.data, 0, data); !fits) return fits;
  }
  const MutexLock guard(id.space().lock());
  if (id.state != IdState::kRequested) return Error{EINVAL, "the request has ended"};
  const Status sent = id.manager->answer(id, reply);
  if (!sent) return Error{EINVAL, sent.error().message};
  id.state = IdState::kConnected;
  return {};
}

// The depths that were asked for count where the program says none.
Status choose_for_reply(CmId& id, const rdma_conn_param* parameters, rdma_conn_param& chosen) {
  rdma_conn_param wanted{};
  if (parameters != nullptr) wanted = *parameters;
  if (parameters == nullptr || wanted.initiator_depth == RDMA_MAX_INIT_DEPTH) {
    wanted.initiator_depth = id.terms.initiator_depth;
  }
  if (parameters == nullptr || wanted.responder_resources == RDMA_MAX_RESP_RES) {
    wanted.responder_resources = id.terms.responder_resources;
  }
  if (parameters == nullptr) wanted.rnr_retry_count = kMostRetries;
  if (id.qp == nullptr && parameters == nullptr) {
    return Error{EINVAL, "neither a queue pair nor parameters"};
  }
  return choose(id, &wanted, chosen);
}

Status send_rep(CmId& id, const rdma_conn_param& chosen) {
  wire::CmRep rep;
  (id.qp_type == IBV_QPT_XRC_RECV ? rep.eecn : rep.qpn) = chosen.qp_num;
  rep.starting_psn = id.terms.own_psn;
  rep.responder_resources = chosen.responder_resources;
  rep.initiator_depth = chosen.initiator_depth;
  rep.flow_control = chosen.flow_control != 0;
  rep.rnr_retry = chosen.rnr_retry_count;
  rep.shared_receive = chosen.srq != 0;
  const auto data = bytes_of(chosen.private_data, chosen.private_data_len);
  if (Status fits = fill(rep.data, 0, data); !fits) return fits;
  const MutexLock guard(id.space().lock());
  if (id.state != IdState::kRequested) return Error{EINVAL, "the request has ended"};
  const Status sent = id.manager->accept(id, rep);
  if (!sent) return Error{EINVAL, sent.error().message};
  id.state = IdState::kAccepting;
  return {};
}

Status accept(CmId& id, const rdma_conn_param* parameters) {
  rdma_conn_param chosen;
  {
    const MutexLock guard(id.space().lock());
    if (id.state != IdState::kRequested) return Error{EINVAL, "the id is of no request"};
    if (!id.has_datagrams()) {
      if (Status fits = choose_for_reply(id, parameters, chosen); !fits) return fits;
      id.terms.initiator_depth = chosen.initiator_depth;
      id.terms.responder_resources = chosen.responder_resources;
    }
  }
  if (id.has_datagrams()) return answer_query(id, parameters);
  if (id.qp != nullptr) {
    if (Status connected = connect_pair(id); !connected) return connected;
  }
  if (Status sent = send_rep(id, chosen); !sent) {
    end_pair(id);
    return sent;
  }
  return await(id);
}

Status reject(CmId& id, wire::CmReason reason, std::span<const std::byte> data) {
  constexpr std::size_t kMost = sizeof(wire::CmRej::data);
  if (data.size() > kMost) return Error{EINVAL, "private data that do not fit"};
  const MutexLock guard(id.space().lock());
  if (id.state != IdState::kRequested && id.state != IdState::kResponded) {
    return Error{EINVAL, "the id is of no request"};
  }
  if (!id.has_datagrams()) return id.manager->reject(id, reason, data);
  wire::CmSidrRep refused;
  refused.status = kRefused;
  if (Status fits = fill(refused.data, 0, data); !fits) return fits;
  return id.manager->answer(id, refused);
}

Status establish(CmId& id) {
  if (id.qp != nullptr) return Error{EINVAL, "the library establishes connections of its pairs"};
  const MutexLock guard(id.space().lock());
  if (id.state != IdState::kResponded) return Error{EINVAL, "there is no reply"};
  if (Status sent = id.manager->confirm(id); !sent) return Error{EINVAL, sent.error().message};
  id.state = IdState::kConnected;
  return {};
}

Status disconnect(CmId& id) {
  if (id.verbs == nullptr) return Error{EINVAL, "the id is bound to no device"};
  const auto lives = [&] {
    return id.state == IdState::kConnected || id.state == IdState::kAccepting ||
           id.state == IdState::kLeft;
  };
  {
    const MutexLock guard(id.space().lock());
    if (!lives() || id.has_datagrams()) return Error{EINVAL, "the id has no connection"};
  }
  end_pair(id);
  {
    const MutexLock guard(id.space().lock());
    if (id.state == IdState::kLeft) {
      id.state = IdState::kEnded;
      const auto is_end = [&](const CmEventRecord& each) {
        return each.target == &id && each.event == RDMA_CM_EVENT_DISCONNECTED;
      };
      // A synchronous id may have been told of it already.
      if (id.own_channel().find(is_end) == nullptr) return {};
    } else if (lives()) {
      id.manager->disconnect(id);
    }
  }
  return await(id);
}

Status notify(CmId& id, ibv_event_type event) {
  if (event != IBV_EVENT_COMM_EST)
    return Error{EINVAL, "the event is of no concern to a connection"};
  const MutexLock guard(id.space().lock());
  if (id.state == IdState::kConnected) return Error{EISCONN, "the connection is there"};
  if (id.state != IdState::kAccepting) return Error{EINVAL, "the id has sent no reply"};
  id.manager->established(id);
  return {};
}

// The next request of a synchronous listener.
Result<rdma_cm_event*> next_request(CmId& listener) {
  if (listener.postponed != nullptr) return std::exchange(listener.postponed, nullptr);
  if (listener.event != nullptr) rdma_ack_cm_event(std::exchange(listener.event, nullptr));
  rdma_cm_event* event = nullptr;
  if (rdma_get_cm_event(listener.channel, &event) != 0) return error_of_errno("rdma_get_cm_event");
  if (event->status == 0 && event->event == RDMA_CM_EVENT_CONNECT_REQUEST) return event;
  listener.event = event;
  return Error{event->status != 0 ? std::abs(event->status) : EINVAL, "another event"};
}

// A request that gets no queue pair waits for the next call.
Status get_request(CmId& listener, rdma_cm_id** id) {
  {
    const MutexLock guard(listener.space().lock());
    if (!listener.is_sync) return Error{EINVAL, "the listener has a channel"};
    if (listener.state != IdState::kListening) return Error{EINVAL, "the id does not listen"};
  }
  auto request = next_request(listener);
  if (!request) return request.error();
  rdma_cm_id* const made = request.value()->id;
  if (listener.pair_of_requests != nullptr) {
    ibv_qp_init_attr attributes = *listener.pair_of_requests;
    if (rdma_create_qp(made, listener.pd, &attributes) != 0) {
      listener.postponed = request.value();
      return error_of_errno("rdma_create_qp");
    }
  }
  *id = made;
  made->event = request.value();
  return {};
}

}  // namespace
}  // namespace weft::rdmacm

using namespace weft::rdmacm;

extern "C" {

int rdma_connect(rdma_cm_id* id, rdma_conn_param* parameters) {
  if (id == nullptr) return minus_one_with(EINVAL);
  return at_c_border([&] { return connect(CmId::of(id), parameters); });
}

int rdma_accept(rdma_cm_id* id, rdma_conn_param* parameters) {
  if (id == nullptr) return minus_one_with(EINVAL);
  return at_c_border([&] { return accept(CmId::of(id), parameters); });
}

int rdma_reject(rdma_cm_id* id, const void* data, std::uint8_t length) {
  if (id == nullptr) return minus_one_with(EINVAL);
  return at_c_border([&] {
    return reject(CmId::of(id), weft::wire::CmReason::kConsumer, bytes_of(data, length));
  });
}

int rdma_reject_ece(rdma_cm_id* id, const void* data, std::uint8_t length) {
  if (id == nullptr) return minus_one_with(EINVAL);
  return at_c_border([&] {
    return reject(CmId::of(id), weft::wire::CmReason::kVendorOption, bytes_of(data, length));
  });
}

int rdma_establish(rdma_cm_id* id) {
  if (id == nullptr) return minus_one_with(EINVAL);
  return at_c_border([&] { return establish(CmId::of(id)); });
}

int rdma_disconnect(rdma_cm_id* id) {
  if (id == nullptr) return minus_one_with(EINVAL);
  return at_c_border([&] { return disconnect(CmId::of(id)); });
}

int rdma_notify(rdma_cm_id* id, ibv_event_type event) {
  if (id == nullptr) return minus_one_with(EINVAL);
  return at_c_border([&] { return notify(CmId::of(id), event); });
}

int rdma_get_request(rdma_cm_id* listener, rdma_cm_id** id) {
  if (listener == nullptr || id == nullptr) return minus_one_with(EINVAL);
  return at_c_border([&] { return get_request(CmId::of(listener), id); });
}

}  // extern "C"
