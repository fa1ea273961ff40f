// SPDX-License-Identifier: BSD-2-Clause
// What is an endpoint to a libfabric program? fi_endpoint(3)
#include "ep.h"

#include <cstring>

#include "boundary.h"
#include "log.h"
#include "offer.h"
#include "os/interfaces.h"
#include "unsupported.h"

namespace weft::fabric {
namespace {

using messaging::Event;

template <class Table>
Table* no_operations() {
  static Table table = unsupported_operations<Table>();
  return &table;
}

Result<os::SocketAddress> wanted_address(const fi_info& info) {
  if (info.src_addr != nullptr) return os::SocketAddress::parse(info.src_addr, info.src_addrlen);
  sockaddr_in v4{};
  sockaddr_in6 v6{};
  v4.sin_family = AF_INET;
  v6.sin6_family = AF_INET6;
  if (info.addr_format == FI_SOCKADDR_IN6) return os::SocketAddress::parse(&v6, sizeof v6);
  return os::SocketAddress::parse(&v4, sizeof v4);
}

}  // namespace

Endpoint::Endpoint(Domain& domain, const fi_info& info, os::UdpPort port, void* context)
    : fid_ep{},
      tx_flags(info.tx_attr != nullptr ? info.tx_attr->op_flags : 0),
      rx_flags(info.rx_attr != nullptr ? info.rx_attr->op_flags : 0),
      domain_(domain),
      caps_(info.caps),
      tx_size_(info.tx_attr != nullptr ? info.tx_attr->size : kUsualQueueSize),
      rx_size_(info.rx_attr != nullptr ? info.rx_attr->size : kUsualQueueSize),
      port_(std::move(port)) {
  uses_.emplace_back(domain);
  fid.fclass = FI_CLASS_EP;
  fid.context = context;
  fid.ops = ep_fid_operations();
  ops = ep_operations();
  cm = cm_operations();
  msg = (caps_ & FI_MSG) != 0 ? message_operations() : no_operations<fi_ops_msg>();
  tagged = (caps_ & FI_TAGGED) != 0 ? tagged_operations() : no_operations<fi_ops_tagged>();
  rma = (caps_ & FI_RMA) != 0 ? rma_operations() : no_operations<fi_ops_rma>();
  atomic = no_operations<fi_ops_atomic>();
  collective = no_operations<fi_ops_collective>();
}

int Endpoint::open(Domain& domain, const fi_info& info, fid_ep** ep, void* context) {
  if (info.ep_attr->type != FI_EP_RDM && info.ep_attr->type != FI_EP_UNSPEC) return -FI_EINVAL;
  const auto address = wanted_address(info);
  if (!address) return -FI_EINVAL;
  auto port = os::UdpPort::bind(address.value());
  if (!port) {
    log_warning(FI_LOG_EP_CTRL, "{}", port.error().message);
    return fabric_status(port.error());
  }
  *ep = new Endpoint(domain, info, std::move(port).value(), context);
  return 0;
}

Endpoint::~Endpoint() {
  if (core_ == nullptr) return;
  if (domain_.progress_thread() != nullptr) domain_.progress_thread()->detach(*core_);
  for (device::EngineGroup* group : groups()) group->detach(*core_);
}

int Endpoint::bind(struct fid* object, std::uint64_t flags) {
  if (core_ != nullptr) return -FI_EOPBADSTATE;
  switch (object->fclass) {
    case FI_CLASS_CQ:
      return bind_cq(CompletionQueue::from(reinterpret_cast<fid_cq*>(object)), flags);
    case FI_CLASS_CNTR:
      return bind_counter(Counter::from(reinterpret_cast<fid_cntr*>(object)), flags);
    case FI_CLASS_AV:
      return bind_av(Av::from(reinterpret_cast<fid_av*>(object)), flags);
    case FI_CLASS_EQ:
      return flags == 0 ? 0 : -FI_EBADFLAGS;  // nothing is reported there
    default:
      return -FI_EINVAL;
  }
}

int Endpoint::bind_cq(CompletionQueue& cq, std::uint64_t flags) {
  if ((flags & ~(FI_TRANSMIT | FI_RECV | FI_SELECTIVE_COMPLETION)) != 0) return -FI_EBADFLAGS;
  if ((flags & (FI_TRANSMIT | FI_RECV)) == 0 || &cq.domain() != &domain_) return -FI_EINVAL;
  const bool tx = (flags & FI_TRANSMIT) != 0;
  const bool rx = (flags & FI_RECV) != 0;
  if ((tx && tx_cq_ != nullptr) || (rx && rx_cq_ != nullptr)) return -FI_EINVAL;
  const bool selective = (flags & FI_SELECTIVE_COMPLETION) != 0;
  if (tx) {
    tx_cq_ = &cq;
    tx_selective_ = selective;
  }
  if (rx) {
    rx_cq_ = &cq;
    rx_selective_ = selective;
  }
  uses_.emplace_back(cq);
  return 0;
}

int Endpoint::bind_counter(Counter& counter, std::uint64_t flags) {
  constexpr std::pair<std::uint64_t, Event> kEvents[] = {{FI_SEND, Event::kSend},
                                                         {FI_RECV, Event::kReceive},
                                                         {FI_READ, Event::kRead},
                                                         {FI_WRITE, Event::kWrite},
                                                         {FI_REMOTE_READ, Event::kRemoteRead},
                                                         {FI_REMOTE_WRITE, Event::kRemoteWrite}};
  std::uint64_t known = 0;
  for (const auto& [flag, event] : kEvents) known |= flag;
  if (flags == 0 || (flags & ~known) != 0) return -FI_EBADFLAGS;
  for (const auto& [flag, event] : kEvents) {
    const bool taken = counters_[static_cast<std::size_t>(event)] != nullptr;
    if ((flags & flag) != 0 && taken) return -FI_EINVAL;
  }
  for (const auto& [flag, event] : kEvents) {
    if ((flags & flag) != 0) counters_[static_cast<std::size_t>(event)] = &counter;
  }
  uses_.emplace_back(counter);
  return 0;
}

int Endpoint::bind_av(Av& av, std::uint64_t flags) {
  if (flags != 0) return -FI_EBADFLAGS;
  if (av_ != nullptr || &av.domain() != &domain_) return -FI_EINVAL;
  av_ = &av;
  uses_.emplace_back(av);
  return 0;
}

// A direction that the endpoint has must be able to report (fi_endpoint(3), fi_enable).
int Endpoint::check_bindings() const {
  if (av_ == nullptr) return -FI_ENOAV;
  const auto counts = [&](Event event) {
    return counters_[static_cast<std::size_t>(event)] != nullptr;
  };
  const bool messages = (caps_ & (FI_MSG | FI_TAGGED)) != 0;
  const bool sends = messages && (caps_ & FI_SEND) != 0;
  const bool receives = messages && (caps_ & FI_RECV) != 0;
  const bool accesses = (caps_ & FI_RMA) != 0 && (caps_ & (FI_READ | FI_WRITE)) != 0;
  const bool counts_tx = counts(Event::kSend) || counts(Event::kRead) || counts(Event::kWrite);
  if ((sends || accesses) && tx_cq_ == nullptr && !counts_tx) return -FI_ENOCQ;
  if (receives && rx_cq_ == nullptr && !counts(Event::kReceive)) return -FI_ENOCQ;
  return 0;
}

std::vector<device::EngineGroup*> Endpoint::groups() {
  std::vector<device::EngineGroup*> all;
  if (tx_cq_ != nullptr) all.push_back(&tx_cq_->queue().engines());
  if (rx_cq_ != nullptr) all.push_back(&rx_cq_->queue().engines());
  for (Counter* counter : counters_) {
    if (counter != nullptr) all.push_back(&counter->counter().engines());
  }
  return all;
}

Status Endpoint::attach() {
  for (device::EngineGroup* group : groups()) {
    if (Status ok = group->attach(*core_); !ok) return ok;
  }
  return {};
}

int Endpoint::enable() {
  if (core_ != nullptr) return -FI_EOPBADSTATE;
  if (const int missing = check_bindings()) return missing;
  messaging::EndpointSetup setup;
  setup.device = domain_.device();
  setup.addresses = &av_->addresses();
  setup.bindings.tx = tx_cq_ != nullptr ? &tx_cq_->queue() : nullptr;
  setup.bindings.rx = rx_cq_ != nullptr ? &rx_cq_->queue() : nullptr;
  for (std::size_t i = 0; i < counters_.size(); ++i) {
    if (counters_[i] != nullptr) setup.bindings.counters[i] = &counters_[i]->counter();
  }
  setup.address = port_->address();
  setup.name = name();
  setup.domain = domain_.id();
  setup.thread_safe = domain_.thread_safe();
  setup.count_remote_reads = setup.bindings.counter(Event::kRemoteRead) != nullptr;
  setup.count_remote_writes = setup.bindings.counter(Event::kRemoteWrite) != nullptr;
  setup.options = domain_.options();
  auto core = messaging::Endpoint::open(std::move(setup));
  if (!core) {
    log_warning(FI_LOG_EP_CTRL, "cannot enable the endpoint: {}", core.error().message);
    return fabric_status(core.error());
  }
  core_ = std::move(core).value();
  if (Status ok = attach(); !ok) {
    for (device::EngineGroup* group : groups()) group->detach(*core_);
    core_.reset();
    return fabric_status(ok.error());
  }
  if (domain_.progress_thread() != nullptr) domain_.progress_thread()->attach(*core_);
  return 0;
}

os::SocketAddress Endpoint::name() const {
  const os::SocketAddress bound = port_->address();
  if (!bound.is_any()) return bound;
  const auto interfaces = os::usable_interfaces();
  if (!interfaces) return bound;
  for (const auto& interface : interfaces.value()) {
    for (const auto& own : interface.addresses) {
      os::SocketAddress usable = own.address;
      if (usable.family() != bound.family()) continue;
      usable.set_port(bound.port());
      return usable;
    }
  }
  return bound;
}

int Endpoint::rename(const os::SocketAddress& address) {
  if (core_ != nullptr) return -FI_EOPBADSTATE;
  auto port = os::UdpPort::bind(address);
  if (!port) return fabric_status(port.error());
  port_ = std::move(port).value();
  return 0;
}

int open_endpoint(Domain& domain, fi_info* info, fid_ep** ep, void* context) {
  return Endpoint::open(domain, *info, ep, context);
}

}  // namespace weft::fabric
