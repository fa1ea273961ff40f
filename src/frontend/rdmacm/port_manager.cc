// SPDX-License-Identifier: BSD-2-Clause
// How do the messages of a UDP port become events of ids?
#include "port_manager.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "cm_id.h"
#include "cm_space.h"
#include "os/interfaces.h"
#include "os/runtime_dir.h"
#include "roce/path.h"
#include "roce/route.h"
#include "wire/packet.h"

namespace weft::rdmacm {
namespace {

// Requests of a listener that have ended before the program was told of them.
constexpr unsigned kMostEnded = 64;
// Some servers, as perftest's with -R, tell the client to connect and then listen: a request waits
// so long for its listener, longer than a time slice of the scheduler.
constexpr auto kListenerGrace = std::chrono::milliseconds(50);
constexpr std::size_t kMostEarly = 64;  // such requests; others are rejected at once
// Between DISCONNECTED and TIMEWAIT_EXIT.
constexpr auto kTimeWait = std::chrono::milliseconds(500);

ibv_gid gid_in(const wire::Gid& bytes) {
  ibv_gid gid{};
  std::memcpy(gid.raw, bytes.data(), sizeof gid);
  return gid;
}

bool is_mtu(std::uint8_t code) { return code >= IBV_MTU_256 && code <= IBV_MTU_4096; }

// In the view of the end that has received it.
ConnectionTerms terms_of(const wire::CmReq& req, const os::SocketAddress& from) {
  ConnectionTerms terms;
  terms.peer_psn = req.starting_psn;
  terms.peer_qpn = req.qpn;
  // The source of the packet, and no other host that it names.
  terms.peer_gid = is_loopback(from) ? gid_in(req.primary.local_gid) : gid_of(from);
  terms.mtu = static_cast<ibv_mtu>(req.path_mtu);
  terms.flow_label = req.primary.flow_label;
  terms.traffic_class = req.primary.traffic_class;
  terms.responder_resources = req.initiator_depth;
  terms.initiator_depth = req.responder_resources;
  terms.retry_count = req.retry_count;
  terms.rnr_retry_count = req.rnr_retry;
  terms.ack_timeout = req.primary.local_ack_timeout;
  return terms;
}

void set_terms(rdma_conn_param& parameters, const ConnectionTerms& terms) {
  parameters.responder_resources = terms.responder_resources;
  parameters.initiator_depth = terms.initiator_depth;
  parameters.rnr_retry_count = terms.rnr_retry_count;
  parameters.qp_num = terms.peer_qpn;
}

cm::AgentOptions options_for(std::uint16_t port, const Options& options) {
  cm::AgentOptions agent;
  agent.port = port;
  agent.guid = os::random_number();
  agent.peer_timeout = options.peer_timeout;
  return agent;
}

}  // namespace

Result<std::shared_ptr<PortManager>> PortManager::open(CmSpace& space,
                                                       const os::SocketAddress& address,
                                                       bool both_families) {
  std::shared_ptr<PortManager> manager(new PortManager(space, address, both_families));
  queue::QpPort& port = space.port();
  port.lock().assert_held();
  auto attachment = port.open_manager(*manager, address, both_families);
  if (!attachment) return attachment.error();
  manager->attachment_ = attachment.value();
  const std::uint16_t number = manager->attachment_.packets->address().port();
  manager->address_.set_port(number);
  cm::CmHost& host = *manager;
  manager->agent_ =
      std::make_unique<cm::Agent>(host, options_for(number, space.options()), port.stats());
  return manager;
}

void PortManager::close() {
  space_.port().lock().assert_held();
  space_.port().close_manager(*this, attachment_);
}

bool PortManager::is_near(const cm::Remote& remote) {
  return os::is_local_address(remote.address.get());
}

std::uint64_t PortManager::random() { return os::random_number(); }

std::uint32_t PortManager::new_psn() { return Psn(static_cast<std::uint32_t>(random())).value(); }

void PortManager::settle_call() {
  space_.port().lock().assert_held();
  agent_->deliver();
  space_.port().plan(*this, due());
}

Time PortManager::due() {
  Time due = agent_->due();
  if (!time_waits_.empty()) due = std::min(due, time_waits_.front().at);
  if (!early_.empty()) due = std::min(due, early_.front().until);
  return due;
}

bool PortManager::listens() const {
  return std::ranges::any_of(bound, [](const CmId* each) { return each->listener != 0; });
}

void PortManager::take(const roce::PacketArrival& arrival) {
  space_.port().lock().assert_held();
  if (arrival.packet.queue_key != wire::kCmQueueKey) {
    return space_.port().stats().add(Stat::kQkeyViolations);
  }
  const std::span<const std::byte> message = arrival.packet.payload;
  if (early_.size() < kMostEarly && !listens() && wire::transaction_of_request(message)) {
    early_.push_back({space_.port().now() + kListenerGrace,
                      {arrival.from, arrival.to},
                      {message.begin(), message.end()}});
  } else {
    take_message(arrival.from, arrival.to, message);
  }
  space_.port().touch(*this);
}

void PortManager::take_message(const os::SocketAddress& from, const os::SocketAddress& to,
                               std::span<const std::byte> message) {
  space_.port().lock().assert_held();
  arrival_ = {from, to};
  agent_->take({from, cm::Carrier::kPackets}, message, space_.port().now());
  agent_->deliver();
  arrival_.reset();
}

void PortManager::take_early(Time now) {
  while (!early_.empty() && (early_.front().until <= now || listens())) {
    const EarlyRequest first = std::move(early_.front());
    early_.pop_front();
    take_message(first.addresses.from, first.addresses.to, first.message);
  }
}

void PortManager::unreachable(const os::UdpError& error) {
  space_.port().lock().assert_held();
  using enum os::UdpError::What;
  if (error.what == kTooBig || error.what == kOther) return;
  unreachable_by_ = error.what;
  agent_->unreachable({error.peer, cm::Carrier::kPackets}, space_.port().now());
  agent_->deliver();
  unreachable_by_.reset();
  space_.port().touch(*this);
}

void PortManager::tick(Time now) {
  space_.port().lock().assert_held();
  take_early(now);
  agent_->advance(now);
  agent_->deliver();
  while (!time_waits_.empty() && time_waits_.front().at <= now) {
    CmId& id = *time_waits_.front().id;
    time_waits_.erase(time_waits_.begin());
    id.own_channel().add(id.event_of(RDMA_CM_EVENT_TIMEWAIT_EXIT, 0));
  }
  if (agent_->entries() == 0) own_addresses_.clear();
  if (is_idle()) space_.close(*this);  // the last use of this
}

// An answer to the message that is being taken goes from the address that this came to.
std::optional<os::SocketAddress> PortManager::own_address(cm::ConnectionId id,
                                                          const os::SocketAddress& peer) {
  if (starts_from_) return starts_from_;  // its number may have had another address
  const auto known = own_addresses_.find(id);
  if (known != own_addresses_.end()) return known->second;
  if (arrival_ && arrival_->from == peer) return arrival_->to;
  if (!address_.is_any()) return address_;
  const auto source = os::source_towards(peer);
  if (!source) return std::nullopt;
  return source.value();
}

void PortManager::send(const cm::Remote& to, cm::ConnectionId id,
                       std::span<const std::byte> message) {
  roce::PacketOutput* const output = attachment_.packets->output(to.address.family());
  auto from = own_address(id, to.address);
  if (output == nullptr || !from) return;  // as if it was lost
  from->set_port(address_.port());
  const roce::Path path{*from, to.address, roce::route_between(*from, to.address)};
  const MutexLock guard(space_.port().transmit_lock());
  output->flush();
  const std::span<std::byte> place = output->place();
  if (place.empty()) return;
  const LocalRange bytes{const_cast<std::byte*>(message.data()), message.size()};
  const auto length = packets_.write(
      {.source = wire::kCmQpn, .destination = wire::kCmQpn, .queue_key = wire::kCmQueueKey},
      {&bytes, 1}, message.size(), place);
  if (!length) return;
  output->add(path, *length);
  output->flush();
}

Status PortManager::listen(CmId& id, std::size_t backlog) {
  const auto listener = agent_->listen(id.service(), backlog, *this, &id);
  if (!listener) return listener.error();
  id.listener = listener.value();
  take_early(Time::clock::now());
  settle_call();
  return {};
}

Status PortManager::connect(CmId& id, const wire::CmReq& req) {
  cm::ConnectRequest request;
  request.to.address = id.destination();
  request.req = req;
  request.watched = true;
  request.ends_unreachable = true;
  if (request.to.address.port() != wire::kUdpPort) {
    request.other = request.to;
    request.other->address.set_port(wire::kUdpPort);
  }
  starts_from_ = id.source();
  const auto connection = agent_->connect(request, *this, &id, Time::clock::now());
  starts_from_.reset();
  if (!connection) return connection.error();
  id.connection = connection.value();
  own_addresses_[id.connection] = id.source();
  settle_call();
  return {};
}

Status PortManager::resolve(CmId& id, const wire::CmSidrReq& query) {
  const cm::Remote to{id.destination(), cm::Carrier::kPackets};
  starts_from_ = id.source();
  const auto connection = agent_->resolve({to, query, {}, true}, *this, &id, Time::clock::now());
  starts_from_.reset();
  if (!connection) return connection.error();
  id.connection = connection.value();
  own_addresses_[id.connection] = id.source();
  settle_call();
  return {};
}

Status PortManager::claim(CmId& id) { return agent_->claim(id.connection, *this, &id); }

Status PortManager::accept(CmId& id, const wire::CmRep& rep) {
  Status done = agent_->accept(id.connection, {rep, {}, true}, *this, &id, Time::clock::now());
  settle_call();
  return done;
}

Status PortManager::answer(CmId& id, wire::CmSidrRep reply) {
  reply.service = id.service();
  Status done = agent_->answer(id.connection, reply, Time::clock::now());
  end(id);
  settle_call();
  return done;
}

Status PortManager::reject(CmId& id, wire::CmReason reason, std::span<const std::byte> data) {
  Status done = agent_->reject(id.connection, reason, data, Time::clock::now());
  end(id);
  settle_call();
  return done;
}

Status PortManager::confirm(CmId& id) {
  Status done = agent_->confirm(id.connection, {}, Time::clock::now());
  settle_call();
  return done;
}

void PortManager::established(CmId& id) {
  agent_->established(id.connection, Time::clock::now());
  settle_call();
}

void PortManager::disconnect(CmId& id) {
  agent_->disconnect(id.connection, {}, Time::clock::now());
  end(id);
  report(id, RDMA_CM_EVENT_DISCONNECTED, 0);
  settle_call();
}

void PortManager::forget(CmId& id) {
  const Time now = Time::clock::now();
  std::erase_if(time_waits_, [&](const EndOfTimeWait& each) { return each.id == &id; });
  if (id.listener != 0) agent_->stop(std::exchange(id.listener, 0), now);
  if (id.connection == 0) return settle_call();
  if (id.state == IdState::kRequested && id.has_datagrams()) {
    wire::CmSidrRep refused;
    refused.status = kRefused;
    refused.service = id.service();
    static_cast<void>(agent_->answer(id.connection, refused, now));
  } else {
    agent_->disconnect(id.connection, {}, now);
  }
  end(id);
  settle_call();
}

void PortManager::end(CmId& id) {
  id.connection = 0;
  id.state = IdState::kEnded;
}

void PortManager::report(CmId& id, rdma_cm_event_type type, int status) {
  id.own_channel().add(id.event_of(type, status));
  if (type != RDMA_CM_EVENT_DISCONNECTED) return;  // its TimeWait begins
  time_waits_.push_back({Time::clock::now() + kTimeWait, &id});
}

void PortManager::handle(const cm::CmEvent& event) {
  using enum cm::EventKind;
  if (event.kind == kRequest) return on_request(event);
  if (event.kind == kResolve) return on_query(event);
  if (event.listener != 0) return on_end_of_request(event);
  CmId& id = *static_cast<CmId*>(event.context);
  switch (event.kind) {
    case kReply:
      return on_reply(id, event);
    case kResolved:
      return on_resolved(id, event);
    case kEstablished:
      id.state = IdState::kConnected;
      return report(id, RDMA_CM_EVENT_ESTABLISHED, 0);
    case kRejected:
      return on_rejected(id, event);
    case kTimedOut:
    case kOverrun:
      end(id);
      return report(id, RDMA_CM_EVENT_UNREACHABLE, -ETIMEDOUT);
    case kUnreachable:
      end(id);
      if (!unreachable_by_ || *unreachable_by_ == os::UdpError::What::kPortUnreachable) {
        if (id.has_datagrams()) return report(id, RDMA_CM_EVENT_UNREACHABLE, kNoSuchService);
        return report(id, RDMA_CM_EVENT_REJECTED,
                      static_cast<int>(wire::CmReason::kInvalidService));
      }
      return report(
          id, RDMA_CM_EVENT_UNREACHABLE,
          *unreachable_by_ == os::UdpError::What::kNetUnreachable ? -ENETUNREACH : -EHOSTUNREACH);
    case kWithdrawn:
      return on_rejected(id, event);
    case kDisconnected:
    case kPeerLost:
      end(id);
      id.state = IdState::kLeft;
      return report(id, RDMA_CM_EVENT_DISCONNECTED, 0);
    case kRequest:
    case kResolve:
      return;
  }
}

void PortManager::introduce(CmEventRecord& record, const wire::CmIpHeader& header) {
  record.listen_id = record.target;
  record.manager = shared_from_this();
  record.own_address = arrival_->to;
  record.own_address.set_port(address_.port());
  own_addresses_[record.request] = arrival_->to;
  record.peer_address.set_port(header.source_port);
}

void PortManager::on_request(const cm::CmEvent& event) {
  space_.port().lock().assert_held();
  const auto& req = std::get<wire::CmReq>(event.mad->message);
  CmId& listener = *static_cast<CmId*>(event.context);
  const std::span<const std::byte, 92> data = req.data;
  const wire::CmIpHeader header = wire::parse_ip_header(data.first<wire::CmIpHeader::kBytes>());
  const bool is_ipv4 = event.remote.address.family() == AF_INET;
  std::optional<wire::CmReason> refusal;
  if (header.version != 0 || header.ip_version != (is_ipv4 ? 4 : 6)) {
    refusal = wire::CmReason::kUnsupported;
  } else if (transport_of(listener.qp_type) != req.transport) {
    refusal = wire::CmReason::kInvalidTransport;
  } else if (!is_mtu(req.path_mtu)) {
    refusal = wire::CmReason::kInvalidMtu;
  }
  if (refusal) {
    return static_cast<void>(agent_->refuse(event.id, *refusal, {}, space_.port().now()));
  }
  auto record = listener.event_of(RDMA_CM_EVENT_CONNECT_REQUEST, 0);
  record->request = event.id;
  record->terms = terms_of(req, event.remote.address);
  record->terms.own_psn = new_psn();
  record->peer_address = event.remote.address;
  introduce(*record, header);
  rdma_conn_param& parameters = record->param.conn;
  set_terms(parameters, record->terms);
  parameters.flow_control = req.flow_control ? 1 : 0;
  parameters.retry_count = req.retry_count;
  parameters.srq = req.shared_receive ? 1 : 0;
  record->set_private_data(parameters, data.subspan<wire::CmIpHeader::kBytes>());
  listener.own_channel().add(std::move(record));
}

void PortManager::on_query(const cm::CmEvent& event) {
  space_.port().lock().assert_held();
  const auto& query = std::get<wire::CmSidrReq>(event.mad->message);
  CmId& listener = *static_cast<CmId*>(event.context);
  const std::span<const std::byte, 216> data = query.data;
  const wire::CmIpHeader header = wire::parse_ip_header(data.first<wire::CmIpHeader::kBytes>());
  if (header.version != 0 || !listener.has_datagrams()) {
    wire::CmSidrRep refused;
    refused.status = kNoSuchService;
    return static_cast<void>(agent_->answer(event.id, refused, space_.port().now()));
  }
  auto record = listener.event_of(RDMA_CM_EVENT_CONNECT_REQUEST, 0);
  record->request = event.id;
  record->terms.peer_gid = gid_of(event.remote.address);
  record->peer_address = event.remote.address;
  introduce(*record, header);
  record->set_private_data(record->param.ud, data.subspan<wire::CmIpHeader::kBytes>());
  listener.own_channel().add(std::move(record));
}

// A request without an id. It stays, so that a program whose descriptor has become readable finds
// an event: it gets an id that has ended. One that younger requests displace leaves those behind.
void PortManager::on_end_of_request(const cm::CmEvent& event) {
  CmId& listener = *static_cast<CmId*>(event.context);
  const auto is_this = [&](const CmEventRecord& each) {
    return each.request == event.id && each.manager.get() == this;
  };
  CmEventRecord* const record = listener.own_channel().find(is_this);
  if (record == nullptr) return;
  if (event.kind == cm::EventKind::kOverrun || listener.ended_requests == kMostEnded) {
    return listener.own_channel().drop(is_this);
  }
  ++listener.ended_requests;
  record->request = 0;
  const auto* const rej =
      event.mad != nullptr ? std::get_if<wire::CmRej>(&event.mad->message) : nullptr;
  if (rej != nullptr) record->end_of_request = static_cast<int>(rej->reason);
}

void PortManager::on_reply(CmId& id, const cm::CmEvent& event) {
  const auto& rep = std::get<wire::CmRep>(event.mad->message);
  ConnectionTerms& terms = id.terms;
  terms.peer_psn = rep.starting_psn;
  terms.peer_qpn = id.qp_type == IBV_QPT_XRC_SEND ? rep.eecn : rep.qpn;
  terms.responder_resources = rep.initiator_depth;
  terms.initiator_depth = rep.responder_resources;
  id.limit_depths();
  terms.rnr_retry_count = rep.rnr_retry;
  id.state = IdState::kResponded;
  auto record = id.event_of(RDMA_CM_EVENT_CONNECT_RESPONSE, 0);
  rdma_conn_param& parameters = record->param.conn;
  set_terms(parameters, terms);
  parameters.flow_control = rep.flow_control ? 1 : 0;
  parameters.srq = rep.shared_receive ? 1 : 0;
  record->set_private_data(parameters, rep.data);
  id.own_channel().add(std::move(record));
}

void PortManager::on_resolved(CmId& id, const cm::CmEvent& event) {
  const auto& reply = std::get<wire::CmSidrRep>(event.mad->message);
  end(id);
  if (reply.status != 0) return report(id, RDMA_CM_EVENT_UNREACHABLE, reply.status);
  id.state = IdState::kConnected;
  auto record = id.event_of(RDMA_CM_EVENT_ESTABLISHED, 0);
  rdma_ud_param& parameters = record->param.ud;
  parameters.qp_num = reply.qpn;
  parameters.qkey = reply.queue_key;
  parameters.ah_attr = id.address_of_peer();
  record->set_private_data(parameters, reply.data);
  id.own_channel().add(std::move(record));
}

void PortManager::on_rejected(CmId& id, const cm::CmEvent& event) {
  end(id);
  const auto* const rej =
      event.mad != nullptr ? std::get_if<wire::CmRej>(&event.mad->message) : nullptr;
  if (rej == nullptr) {  // a DREQ
    id.state = IdState::kLeft;
    return report(id, RDMA_CM_EVENT_DISCONNECTED, 0);
  }
  auto record = id.event_of(RDMA_CM_EVENT_REJECTED, static_cast<int>(rej->reason));
  record->set_private_data(record->param.conn, rej->data);
  id.own_channel().add(std::move(record));
}

}  // namespace weft::rdmacm
