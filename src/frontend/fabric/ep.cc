// SPDX-License-Identifier: BSD-2-Clause
// What is an endpoint to a libfabric program? fi_endpoint(3)
#include "ep.h"

#include <algorithm>
#include <new>

#include "authorization.h"
#include "base/path_mtu.h"
#include "boundary.h"
#include "c_enum.h"
#include "contract.h"
#include "log.h"
#include "name.h"
#include "negotiate.h"
#include "offer.h"
#include "os/interfaces.h"
#include "unsupported.h"

namespace weft::fabric {
namespace {

using messaging::CounterEvent;

// An endpoint has drivers beside its queues and counters: event queue, registry, thread.
constexpr std::size_t kOtherDrivers = 3;

// The offer of an endpoint's type, or null when there is none.
const TypeOffer* offer_of(int type) {
  if (type == FI_EP_UNSPEC) return kTypes[0];
  for (const TypeOffer* offer : kTypes) {
    if (offer->type == type) return offer;
  }
  return nullptr;
}

// How many bytes one packet of an endpoint carries. A wildcard stands for every interface.
std::size_t path_mtu_at(const os::SocketAddress& own) {
  const auto interfaces = os::usable_interfaces();
  if (!interfaces) return 0;
  const os::Interface* owner = os::owner_of(interfaces.value(), own);
  if (owner != nullptr) return path_mtu(owner->mtu);
  std::size_t least = kMaxDatagramSize;
  for (const os::Interface& each : interfaces.value()) least = std::min(least, path_mtu(each.mtu));
  return least;
}

template <class Attributes>
std::uint32_t size_of(const Attributes* attributes, std::size_t usual) {
  const bool chosen = attributes != nullptr && attributes->size != 0;
  return static_cast<std::uint32_t>(chosen ? attributes->size : usual);
}

// That of the transmit context, else the domain's (fi_domain(3)), as it is in the IP header.
std::uint8_t class_of(const Domain& domain, const fi_info& info) {
  const std::uint32_t wanted =
      info.tx_attr != nullptr ? info.tx_attr->tclass : std::uint32_t{FI_TC_UNSPEC};
  constexpr int kEcnBits = 2;
  const std::uint32_t agreed = wanted != FI_TC_UNSPEC ? wanted : domain.traffic_class();
  return static_cast<std::uint8_t>(dscp_of(agreed) << kEcnBits);
}

}  // namespace

Ep::Ep(Domain& domain, const fi_info& info, const TypeOffer& offer, os::UdpPort port, void* context)
    : Handle(FI_CLASS_EP, domain, context, ep_fid_operations()),
      number_(domain.next_endpoint_number()),
      tx_size_(size_of(info.tx_attr, kUsualQueueSize)),
      rx_size_(size_of(info.rx_attr, kUsualReceives)),
      traffic_class_(class_of(domain, info)),
      shares_tx_(info.ep_attr->tx_ctx_cnt == FI_SHARED_CONTEXT),
      shares_rx_(info.ep_attr->rx_ctx_cnt == FI_SHARED_CONTEXT),
      host_(port.address()),
      port_(std::move(port)) {
  host_.set_port(0);
  uses_.emplace_back(domain);
  endpoint_ = this;
  offer_ = &offer;
  rules_ = domain.transfer_rules();
  caps_ = info.caps & offer.caps;
  min_multi_receive_ = &min_multi_receive_here_;
  tx_flags = info.tx_attr != nullptr ? info.tx_attr->op_flags : 0;
  rx_flags = info.rx_attr != nullptr ? info.rx_attr->op_flags : 0;
  running_.max_message_size =
      offer.type == FI_EP_DGRAM ? path_mtu_at(port_->address()) : offer.max_message_size;
  ops = handle_operations();
  cm = datagram_cm_operations();
  // Where receives are shared they are not posted here.
  const Direction direction = shares_rx_ ? Direction::kTransmit : Direction::kBoth;
  const bool datagrams = offer.type == FI_EP_DGRAM;
  fi_ops_msg* messages = datagrams ? datagram_operations(direction) : message_operations(direction);
  msg = (caps_ & FI_MSG) != 0 ? messages : no_operations<fi_ops_msg>();
  tagged = (caps_ & FI_TAGGED) != 0 ? tagged_operations(direction) : no_operations<fi_ops_tagged>();
  rma = (caps_ & FI_RMA) != 0 ? rma_operations() : no_operations<fi_ops_rma>();
  atomic = (caps_ & FI_ATOMIC) != 0 ? atomic_operations() : no_operations<fi_ops_atomic>();
  collective = no_operations<fi_ops_collective>();
  listed_.emplace(domain.endpoints(), *this);
}

// The address of the endpoint, and what the handle of the info says. A request is taken last, so
// that it is answered in every case.
int Ep::begin(Domain& domain, const fi_info& info, Beginning& beginning) {
  auto address = wanted_address(info);
  if (!address) return -FI_EINVAL;
  if (info.handle != nullptr) address.value().set_port(0);  // that one is taken
  auto port = os::UdpPort::bind(address.value());
  if (!port) {
    log_warning(FI_LOG_EP_CTRL, "{}", port.error().message);
    return fabric_status(port.error());
  }
  if (info.handle != nullptr) {
    PassiveEndpoints& passive = domain.fabric().passive_endpoints();
    if (const int wrong = passive.take(info.handle, beginning)) return wrong;
  }
  if (info.handle == nullptr) beginning.chosen = address.value().port() != 0;
  if (beginning.port) beginning.chosen = true;
  if (!beginning.port) beginning.port = std::move(port).value();
  return 0;
}

// One as an endpoint, and one for each context that is not shared.
bool Ep::take_places(DomainPlaces& from, const fi_ep_attr& attributes,
                     std::vector<Places::Reservation>& places) {
  Places* const transmit =
      attributes.tx_ctx_cnt != FI_SHARED_CONTEXT ? &from.transmit_contexts : nullptr;
  Places* const receive =
      attributes.rx_ctx_cnt != FI_SHARED_CONTEXT ? &from.receive_contexts : nullptr;
  places.reserve(3);
  for (Places* each : {&from.endpoints, transmit, receive}) {
    if (each == nullptr) continue;
    Places::Reservation place = each->take();
    if (!place) return false;
    places.push_back(std::move(place));
  }
  return true;
}

int Ep::open(Domain& domain, const fi_info& info, fid_ep** ep, void* context) {
  const int type = number_of(info.ep_attr->type);
  const TypeOffer* offer = offer_of(type);
  if (offer == nullptr) {
    log_warning(FI_LOG_EP_CTRL, "endpoint type {}: not offered", type);
    return -FI_EINVAL;
  }
  if (Status ok = check_endpoint(info, *offer, domain.terms()); !ok) {
    log_warning(FI_LOG_EP_CTRL, "cannot open the endpoint: {}", ok.error().message);
    return fabric_status(ok.error());
  }
  const std::uint64_t served = info.caps | (domain.memory() != nullptr ? FI_HMEM : 0);
  if (serves_devices(served) && !domain.options().links.udp) {
    log_warning(FI_LOG_EP_CTRL, "FI_HMEM of a target needs the network");
    return -FI_EINVAL;
  }
  const int missing = mr_modes_for(domain.terms(), info.caps) & ~domain.registration().bits;
  if (missing != 0) {
    log_warning(FI_LOG_EP_CTRL, "caps {:#x}: the domain was opened without mr_mode {:#x}",
                info.caps, missing);
    return -FI_EINVAL;
  }
  const bool connected = offer->type == FI_EP_MSG;
  if (!connected && info.handle != nullptr) return -FI_EINVAL;
  auto key = authorization_in(*info.ep_attr, domain.api_version(), *domain.device(),
                              domain.authorization());
  if (!key) {
    log_warning(FI_LOG_EP_CTRL, "cannot open the endpoint: {}", key.error().message);
    return fabric_status(key.error());
  }
  std::vector<Places::Reservation> places;
  if (!take_places(domain.places(), *info.ep_attr, places)) return -FI_ENOSPC;
  Beginning beginning;
  if (const int wrong = begin(domain, info, beginning)) return wrong;
  std::unique_ptr<Ep> created(new Ep(domain, info, *offer, std::move(*beginning.port), context));
  created->authorization_ = std::move(key).value();
  created->places_ = std::move(places);
  if (connected) {
    created->keeps_port_ = beginning.chosen;
    if (beginning.request) created->listener_ = beginning.listener;
    created->cm = connection_cm_operations();
    created->connector_ =
        std::make_unique<Connector>(created->fid, domain, std::move(beginning.request));
  }
  *ep = created.release();
  return 0;
}

Ep::~Ep() {
  listed_.reset();
  if (core_ != nullptr) {
    if (bound_.tx_cq != nullptr && running_.core != nullptr) bound_.tx_cq->dismiss(tx_size());
    detach();
    domain_.triggers().drop(core_.get());
    if (bound_.shared_rx == nullptr) domain_.triggers().drop(&core_->receives());
    log_statistics();
    core_.reset();
  }
  try {
    if (connector_ != nullptr) connector_->decline(host_);
  } catch (const std::bad_alloc&) {
    // The requester's timeout ends the request.
  }
}

int Ep::quiesce() {
  if (core_ == nullptr) return 0;
  const Status closed = core_->close();
  if (closed) return 0;
  log_warning(FI_LOG_EP_CTRL, "cannot close the endpoint: {}", closed.error().message);
  return fabric_status(closed.error());
}

void Ep::log_statistics() const {
  try {
    const std::string text = text_of(core_->stats());
    if (text.empty()) return;
    log_info(FI_LOG_EP_DATA, "statistics of {}: {}", core_->name().text(), text);
  } catch (const std::bad_alloc&) {
    // The text needs memory.
  }
}

int Ep::bind(struct fid* object, std::uint64_t flags) {
  const std::lock_guard guard(control_);
  if (core_ != nullptr) return -FI_EOPBADSTATE;
  switch (object->fclass) {
    case FI_CLASS_CQ:
      return bind_cq(Cq::from(object), flags);
    case FI_CLASS_CNTR:
      return bind_counter(Cntr::from(object), flags);
    case FI_CLASS_AV:
      return bind_one(Av::from(object), bound_.av, true, flags);
    case FI_CLASS_EQ:
      return bind_eq(EventQueue::from(object), flags);
    case FI_CLASS_STX_CTX:
      return bind_one(SharedTransmit::from(object), bound_.shared_tx, shares_tx_, flags,
                      &SharedTransmit::from(object).places());
    case FI_CLASS_SRX_CTX:
      return bind_one(SharedReceive::from(object), bound_.shared_rx, shares_rx_, flags,
                      &SharedReceive::from(object).places());
    default:
      return -FI_EINVAL;
  }
}

int Ep::bind_cq(Cq& cq, std::uint64_t flags) {
  if ((flags & ~(FI_TRANSMIT | FI_RECV | FI_SELECTIVE_COMPLETION)) != 0) return -FI_EBADFLAGS;
  if ((flags & (FI_TRANSMIT | FI_RECV)) == 0 || &cq.domain() != &domain_) return -FI_EINVAL;
  const bool tx = (flags & FI_TRANSMIT) != 0;
  const bool rx = (flags & FI_RECV) != 0;
  if ((tx && bound_.tx_cq != nullptr) || (rx && bound_.rx_cq != nullptr)) return -FI_EINVAL;
  const bool selective = (flags & FI_SELECTIVE_COMPLETION) != 0;
  if (tx) {
    bound_.tx_cq = &cq;
    running_.tx_selective = selective;
  }
  if (rx) {
    bound_.rx_cq = &cq;
    running_.rx_selective = selective;
  }
  uses_.emplace_back(cq);
  return 0;
}

int Ep::bind_counter(Cntr& counter, std::uint64_t flags) {
  constexpr std::pair<std::uint64_t, CounterEvent> kEvents[] = {
      {FI_SEND, CounterEvent::kSend},
      {FI_RECV, CounterEvent::kReceive},
      {FI_READ, CounterEvent::kRead},
      {FI_WRITE, CounterEvent::kWrite},
      {FI_REMOTE_READ, CounterEvent::kRemoteRead},
      {FI_REMOTE_WRITE, CounterEvent::kRemoteWrite}};
  std::uint64_t known = 0;
  for (const auto& [flag, event] : kEvents) known |= flag;
  if (flags == 0 || (flags & ~known) != 0) return -FI_EBADFLAGS;
  if (&counter.domain() != &domain_) return -FI_EINVAL;
  for (const auto& [flag, event] : kEvents) {
    if ((flags & flag) != 0 && bound_.counts(event)) return -FI_EINVAL;
  }
  for (const auto& [flag, event] : kEvents) {
    if ((flags & flag) != 0) bound_.counter(event) = &counter;
  }
  uses_.emplace_back(counter);
  return 0;
}

// Nothing is reported there for a reliable datagram endpoint.
int Ep::bind_eq(EventQueue& eq, std::uint64_t flags) {
  if (flags != 0) return -FI_EBADFLAGS;
  return connector_ != nullptr ? connector_->bind(eq) : bound_.eq.bind(eq);
}

// Takes one of `places`, if there are any for endpoints of that object.
template <class Object>
int Ep::bind_one(Object& object, Object*& place, bool has_place, std::uint64_t flags,
                 Places* places) {
  if (flags != 0) return -FI_EBADFLAGS;
  if (!has_place || place != nullptr || &object.domain() != &domain_) return -FI_EINVAL;
  if (places != nullptr) {
    Places::Reservation taken = places->take();
    if (!taken) return -FI_ENOSPC;
    places_.push_back(std::move(taken));
  }
  place = &object;
  uses_.emplace_back(object);
  return 0;
}

// A direction that the endpoint has must be able to report (fi_endpoint(3), fi_enable).
int Ep::check_bindings() const {
  if (connector_ == nullptr && bound_.av == nullptr) return -FI_ENOAV;
  const bool has_eq = domain_.default_eq() != nullptr;
  if (connector_ != nullptr && connector_->eq() == nullptr && !has_eq) return -FI_ENOEQ;
  if (shares_tx_ != (bound_.shared_tx != nullptr)) return -FI_EOPBADSTATE;
  if (shares_rx_ != (bound_.shared_rx != nullptr)) return -FI_EOPBADSTATE;
  const bool messages = (caps_ & (FI_MSG | FI_TAGGED)) != 0;
  const bool sends = messages && (caps_ & FI_SEND) != 0;
  const bool receives = messages && (caps_ & FI_RECV) != 0;
  const bool accesses = (caps_ & kRmaCaps) != 0 && (caps_ & (FI_READ | FI_WRITE)) != 0;
  const bool counts_tx = bound_.counts(CounterEvent::kSend) || bound_.counts(CounterEvent::kRead) ||
                         bound_.counts(CounterEvent::kWrite);
  if ((sends || accesses) && bound_.tx_cq == nullptr && !counts_tx) return -FI_ENOCQ;
  if (receives && bound_.rx_cq == nullptr && !bound_.counts(CounterEvent::kReceive))
    return -FI_ENOCQ;
  return 0;
}

// FI_RMA and FI_ATOMIC without modifiers imply all of them: fi_getinfo() has added those.
ServedAccess Ep::served() const {
  Access rights = Access::kNone;
  if ((caps_ & FI_REMOTE_READ) != 0) rights = rights | Access::kRemoteRead;
  if ((caps_ & FI_REMOTE_WRITE) != 0) rights = rights | Access::kRemoteWrite;
  return {(caps_ & FI_RMA) != 0 ? rights : Access::kNone,
          (caps_ & FI_ATOMIC) != 0 ? rights : Access::kNone};
}

std::vector<device::EngineGroup*> Ep::groups() {
  std::vector<device::EngineGroup*> all;
  if (bound_.tx_cq != nullptr) all.push_back(&bound_.tx_cq->queue().engines());
  if (bound_.rx_cq != nullptr) all.push_back(&bound_.rx_cq->queue().engines());
  for (Cntr* counter : bound_.counters) {
    if (counter != nullptr) all.push_back(&counter->counter().engines());
  }
  return all;
}

// The port joins a driver with the first of its endpoints, and leaves it with the last.
template <class Join, class Leave>
Status Ep::be_driven_by(const void* driver, Join join, Leave leave) {
  device::EngineUses& uses = core_->port().uses();
  leaves_.emplace_back([&uses, driver, leave] { uses.remove(driver, leave); });
  Status joined = uses.add(driver, join);
  if (!joined) leaves_.pop_back();
  return joined;
}

Status Ep::attach() {
  messaging::SharedPort& port = core_->port();
  device::Engine& foreign = port.for_foreign_threads();
  const auto drive = [&](device::EngineGroup& group, device::Engine& engine) {
    return be_driven_by(
        &group, [&] { return group.attach(engine); }, [&] { group.detach(engine); });
  };
  const std::vector<device::EngineGroup*> queues = groups();
  leaves_.reserve(queues.size() + kOtherDrivers);
  for (device::EngineGroup* group : queues) {
    if (Status ok = drive(*group, port); !ok) return ok;
  }
  if (connector_ != nullptr) {
    if (Status ok = drive(connector_->eq()->waiting(), foreign); !ok) return ok;
  }
  device::EngineRegistry& engines = domain_.engines();
  const auto join = [&] { return engines.join(port); };
  if (Status ok = be_driven_by(&engines, join, [&] { engines.leave(port); }); !ok) return ok;
  device::ProgressThread* const thread = domain_.progress_thread();
  if (thread == nullptr) return {};
  const auto attach = [&] {
    thread->attach(foreign);
    return Status();
  };
  return be_driven_by(thread, attach, [thread, &foreign] { thread->detach(foreign); });
}

void Ep::detach() {
  for (; !leaves_.empty(); leaves_.pop_back()) leaves_.back()();
}

Links Ep::links() const {
  return links_for(domain_.options(), caps_ | (domain_.memory() != nullptr ? FI_HMEM : 0));
}

messaging::EndpointSetup Ep::setup() {
  messaging::EndpointSetup setup;
  setup.place = {*port_, links()};
  setup.place.traffic_class = traffic_class_;
  setup.device = domain_.device();
  if (connector_ != nullptr) {
    connector_->set_up(setup);
  } else {
    setup.addresses = &bound_.av->addresses();
  }
  if (bound_.shared_rx != nullptr) setup.receives = &bound_.shared_rx->queue();
  setup.transmit_room = tx_size();
  setup.receive_room = rx_size_;
  setup.bindings.tx = bound_.tx_cq != nullptr ? &bound_.tx_cq->queue() : nullptr;
  setup.bindings.rx = bound_.rx_cq != nullptr ? &bound_.rx_cq->queue() : nullptr;
  for (std::size_t i = 0; i < bound_.counters.size(); ++i) {
    if (bound_.counters[i] != nullptr) setup.bindings.counters[i] = &bound_.counters[i]->counter();
  }
  setup.name = name_of(*port_);
  setup.domain = domain_.id();
  setup.served = served();
  setup.number = number_;
  setup.authorization = authorization_;
  setup.locking = domain_.locking();
  setup.count_remote_reads = setup.bindings.counter(CounterEvent::kRemoteRead) != nullptr;
  setup.count_remote_writes = setup.bindings.counter(CounterEvent::kRemoteWrite) != nullptr;
  // fi_mr(3): an access is counted if the endpoint that it goes through has FI_RMA_EVENT.
  if ((caps_ & FI_RMA_EVENT) != 0) setup.region_counters = &domain_.region_counters();
  if (offer_->type == FI_EP_DGRAM) setup.service = link::Service::kDatagram;
  setup.totals = domain_.port_totals();
  setup.remote_peer_seen = domain_.remote_peer_seen();
  setup.options = &domain_.options();
  return setup;
}

Result<std::unique_ptr<messaging::Endpoint>> Ep::open_core() {
  messaging::EndpointSetup wanted = setup();
  if (connector_ != nullptr && !keeps_port_) {
    auto shared = domain_.ports().port_for(wanted, *port_);
    if (!shared) return shared.error();
    wanted.port = std::move(shared).value();
  }
  return messaging::Endpoint::open(std::move(wanted));
}

int Ep::enable() {
  const std::lock_guard guard(control_);
  if (core_ != nullptr) return -FI_EOPBADSTATE;
  if (const int missing = check_bindings()) return missing;
  auto core = open_core();
  if (!core) {
    log_warning(FI_LOG_EP_CTRL, "cannot enable the endpoint: {}", core.error().message);
    return fabric_status(core.error());
  }
  core_ = std::move(core).value();
  if (connector_ != nullptr) {
    if (connector_->eq() == nullptr) connector_->bind(*domain_.default_eq());
    connector_->start(*core_);
  }
  if (Status ok = attach(); !ok) {
    detach();
    core_.reset();
    return fabric_status(ok.error());
  }
  if (core_->port().keeps_address()) port_.reset();
  start_running();
  return 0;
}

void Ep::start_running() {
  if (bound_.tx_cq != nullptr) bound_.tx_cq->admit(tx_size());
  running_.core = core_.get();
  running_.receives = bound_.shared_rx == nullptr ? &core_->receives() : nullptr;
  const std::lock_guard guard(aliases_lock_);
  for (Handle* alias : aliases_) alias->follow(*this);
}

void Ep::add_alias(Handle& alias) {
  const std::lock_guard guard(aliases_lock_);
  alias.follow(*this);
  aliases_.push_back(&alias);
}

void Ep::remove_alias(Handle& alias) {
  const std::lock_guard guard(aliases_lock_);
  std::erase(aliases_, &alias);
}

std::size_t Ep::tx_size() const {
  return bound_.shared_tx != nullptr ? bound_.shared_tx->size() : tx_size_;
}

std::size_t Ep::tx_size_left() const { return core_->transmit_room(); }

os::SocketAddress Ep::name() const {
  const std::lock_guard guard(control_);
  return core_ != nullptr ? core_->name() : name_of(*port_);
}

os::SocketAddress Ep::public_name() const { return listener_ ? *listener_ : name(); }

int Ep::rename(const os::SocketAddress& address) {
  const std::lock_guard guard(control_);
  if (core_ != nullptr) return -FI_EOPBADSTATE;
  auto port = os::UdpPort::bind(address);
  if (!port) return fabric_status(port.error());
  port_ = std::move(port).value();
  keeps_port_ = true;
  if (offer_->type == FI_EP_DGRAM) running_.max_message_size = path_mtu_at(port_->address());
  return 0;
}

int open_endpoint(Domain& domain, fi_info* info, fid_ep** ep, void* context) {
  return Ep::open(domain, *info, ep, context);
}

}  // namespace weft::fabric
