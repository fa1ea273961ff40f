// SPDX-License-Identifier: BSD-2-Clause
// How an endpoint is opened, bound and brought together with its peers.
#include "endpoint.h"

#include <rdma/fi_cm.h>
#include <rdma/fi_eq.h>
#include <rdma/fi_errno.h>

#include <algorithm>
#include <cstdint>
#include <utility>

#include "failure.h"

namespace weft::bench {
namespace {

constexpr std::size_t kQueueReserve = 64;

std::uint64_t fitting_window(const Options& options, const fi_info& info) {
  std::uint64_t window = options.window;
  if (info.tx_attr->size > 0) window = std::min<std::uint64_t>(window, info.tx_attr->size);
  if (info.rx_attr->size > 0) window = std::min<std::uint64_t>(window, info.rx_attr->size);
  return std::max<std::uint64_t>(window, 1);
}

Info copy_of(const fi_info& info) {
  Info copy(fi_dupinfo(&info));
  if (!copy) die("fi_dupinfo", "out of memory");
  return copy;
}

FabricObject<fid_cq> open_queue(fid_domain* domain, std::uint64_t window) {
  fi_cq_attr attributes{};
  attributes.size = 2 * window + kQueueReserve;
  attributes.format = FI_CQ_FORMAT_TAGGED;
  attributes.wait_obj = FI_WAIT_NONE;
  fid_cq* queue = nullptr;
  check_fabric(fi_cq_open(domain, &attributes, &queue, nullptr), "fi_cq_open");
  return FabricObject<fid_cq>(queue);
}

FabricObject<fid_cntr> open_counter(fid_domain* domain) {
  fi_cntr_attr attributes{};
  attributes.events = FI_CNTR_EVENTS_COMP;
  attributes.wait_obj = FI_WAIT_NONE;
  fid_cntr* counter = nullptr;
  check_fabric(fi_cntr_open(domain, &attributes, &counter, nullptr), "fi_cntr_open");
  return FabricObject<fid_cntr>(counter);
}

FabricObject<fid_av> open_addresses(fid_domain* domain, unsigned peers) {
  fi_av_attr attributes{};
  attributes.type = FI_AV_UNSPEC;
  attributes.count = peers;
  fid_av* addresses = nullptr;
  check_fabric(fi_av_open(domain, &attributes, &addresses, nullptr), "fi_av_open");
  return FabricObject<fid_av>(addresses);
}

// What the sent counter counts: every kind of operation that INFO allows this process to start.
std::uint64_t started_kinds(const fi_info& info) {
  std::uint64_t kinds = FI_SEND;
  if ((info.caps & (FI_RMA | FI_ATOMIC)) != 0) kinds |= FI_READ | FI_WRITE;
  return kinds;
}

}  // namespace

Endpoint::Endpoint(const Options& options, std::shared_ptr<AccessDomain> opened)
    : opened_(std::move(opened)),
      info_(copy_of(*opened_->info)),
      window_(fitting_window(options, *info_)),
      least_multi_receive_(options.receive == Receive::kMulti ? options.size : 0),
      queue_(open_queue(domain(), window_)) {
  if (options.count_by == CountBy::kCounters) open_counters();
  if (options.endpoint == EndpointType::kConnected) {
    open_passive();
  } else {
    open_unconnected(options);
  }
}

void Endpoint::open_counters() {
  sent_counter_ = open_counter(domain());
  received_counter_ = open_counter(domain());
  // The queue takes what asks for it, which is nothing but errors.
  info_->tx_attr->op_flags &= ~std::uint64_t{FI_COMPLETION};
  info_->rx_attr->op_flags &= ~std::uint64_t{FI_COMPLETION};
}

// COMPANION: the address vector or the event queue.
FabricObject<fid_ep> Endpoint::open_endpoint(fi_info& info, fid& companion, void* context) {
  fid_ep* ep = nullptr;
  check_fabric(fi_endpoint(domain(), &info, &ep, context), "fi_endpoint");
  FabricObject<fid_ep> owned(ep);
  check_fabric(fi_ep_bind(ep, &companion, 0), "fi_ep_bind of address vector or event queue");
  const std::uint64_t selective = sent_counter_ != nullptr ? FI_SELECTIVE_COMPLETION : 0;
  check_fabric(fi_ep_bind(ep, &queue_->fid, FI_TRANSMIT | FI_RECV | selective),
               "fi_ep_bind of the completion queue");
  if (sent_counter_ != nullptr) {
    check_fabric(fi_ep_bind(ep, &sent_counter_->fid, started_kinds(info)),
                 "fi_ep_bind of the sent counter");
    check_fabric(fi_ep_bind(ep, &received_counter_->fid, FI_RECV),
                 "fi_ep_bind of the received counter");
  }
  check_fabric(fi_enable(ep), "fi_enable");
  // Not earlier, as fi_endpoint(3) would rather have it: libfabric's shm 1.17 ends the process
  // then.
  if (least_multi_receive_ > 0) {
    check_fabric(fi_setopt(&ep->fid, FI_OPT_ENDPOINT, FI_OPT_MIN_MULTI_RECV, &least_multi_receive_,
                           sizeof least_multi_receive_),
                 "fi_setopt of FI_OPT_MIN_MULTI_RECV");
  }
  return owned;
}

void Endpoint::open_unconnected(const Options& options) {
  addresses_ = open_addresses(domain(), options.peers);
  endpoints_.push_back(open_endpoint(*info_, addresses_->fid, nullptr));
}

void Endpoint::open_passive() {
  fi_eq_attr attributes{};
  attributes.wait_obj = FI_WAIT_NONE;
  fid_eq* events = nullptr;
  check_fabric(fi_eq_open(opened_->fabric.get(), &attributes, &events, nullptr), "fi_eq_open");
  events_.reset(events);
  fid_pep* passive = nullptr;
  check_fabric(fi_passive_ep(opened_->fabric.get(), info_.get(), &passive, nullptr),
               "fi_passive_ep");
  passive_.reset(passive);
  check_fabric(fi_pep_bind(passive, &events->fid, 0), "fi_pep_bind");
  check_fabric(fi_listen(passive), "fi_listen");
}

void Endpoint::adopt(fid_mr* region) const {
  if (!needs_mr(FI_MR_ENDPOINT)) return;
  check_fabric(fi_mr_bind(region, &endpoints_.front()->fid, 0), "fi_mr_bind");
  check_fabric(fi_mr_enable(region), "fi_mr_enable");
}

Info Endpoint::await_event(std::uint32_t event) {
  fi_eq_cm_entry entry{};
  std::uint32_t got = 0;
  ssize_t rc = -FI_EAGAIN;
  while (rc == -FI_EAGAIN) rc = fi_eq_read(events_.get(), &got, &entry, sizeof entry, 0);
  if (rc < 0) check_fabric(static_cast<int>(rc), "fi_eq_read");
  if (got != event) die("fi_eq_read", "another event than the expected one");
  return Info(entry.info);
}

fid_ep* Endpoint::open_connection(fi_info* request, void* context) {
  endpoints_.push_back(
      open_endpoint(request == nullptr ? *info_ : *request, events_->fid, context));
  return endpoints_.back().get();
}

Peer Endpoint::connect(const std::vector<std::byte>& name, bool asks) {
  const Info request = asks ? nullptr : await_event(FI_CONNREQ);
  fid_ep* const ep = open_connection(request.get(), nullptr);
  if (asks) {
    check_fabric(fi_connect(ep, name.data(), nullptr, 0), "fi_connect");
  } else {
    check_fabric(fi_accept(ep, nullptr, 0), "fi_accept");
  }
  await_event(FI_CONNECTED);
  return {ep, FI_ADDR_UNSPEC};
}

Peer Endpoint::meet(const std::vector<std::byte>& name, bool asks) {
  if (passive_ != nullptr) return connect(name, asks);
  return {endpoints_.front().get(), add_peer(name)};
}

std::vector<std::byte> Endpoint::name() const {
  fid* const named = passive_ != nullptr ? &passive_->fid : &endpoints_.front()->fid;
  std::size_t length = 0;
  const int rc = fi_getname(named, nullptr, &length);
  if (rc != -FI_ETOOSMALL) check_fabric(rc, "fi_getname");
  std::vector<std::byte> name(length);
  check_fabric(fi_getname(named, name.data(), &length), "fi_getname");
  name.resize(length);
  return name;
}

fi_addr_t Endpoint::add_peer(const std::vector<std::byte>& name) const {
  fi_addr_t peer = FI_ADDR_UNSPEC;
  const int added = fi_av_insert(addresses_.get(), name.data(), 1, &peer, 0, nullptr);
  check_fabric(added, "fi_av_insert");
  if (added != 1) die("fi_av_insert", "the peer's address was refused");
  return peer;
}

}  // namespace weft::bench
