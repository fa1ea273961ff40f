// SPDX-License-Identifier: BSD-2-Clause
// How the endpoint is opened and given its peer.
#include "endpoint.h"

#include <rdma/fi_cm.h>
#include <rdma/fi_eq.h>
#include <rdma/fi_errno.h>

#include <algorithm>
#include <cstdint>

#include "failure.h"
#include "selection.h"

namespace weft::bench {
namespace {

constexpr std::size_t kQueueReserve = 64;

std::uint64_t fitting_window(const Options& options, const fi_info& info) {
  std::uint64_t window = options.window;
  if (info.tx_attr->size > 0) window = std::min<std::uint64_t>(window, info.tx_attr->size);
  if (info.rx_attr->size > 0) window = std::min<std::uint64_t>(window, info.rx_attr->size);
  return std::max<std::uint64_t>(window, 1);
}

FabricObject<fid_fabric> open_fabric(const fi_info& info) {
  fid_fabric* fabric = nullptr;
  check_fabric(fi_fabric(info.fabric_attr, &fabric, nullptr), "fi_fabric");
  return FabricObject<fid_fabric>(fabric);
}

FabricObject<fid_domain> open_domain(fid_fabric* fabric, fi_info& info) {
  fid_domain* domain = nullptr;
  check_fabric(fi_domain(fabric, &info, &domain, nullptr), "fi_domain");
  return FabricObject<fid_domain>(domain);
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

FabricObject<fid_av> open_addresses(fid_domain* domain) {
  fi_av_attr attributes{};
  attributes.type = FI_AV_UNSPEC;
  attributes.count = 2;
  fid_av* addresses = nullptr;
  check_fabric(fi_av_open(domain, &attributes, &addresses, nullptr), "fi_av_open");
  return FabricObject<fid_av>(addresses);
}

FabricObject<fid_ep> open_endpoint(fid_domain* domain, fi_info& info) {
  fid_ep* ep = nullptr;
  check_fabric(fi_endpoint(domain, &info, &ep, nullptr), "fi_endpoint");
  return FabricObject<fid_ep>(ep);
}

}  // namespace

Endpoint::Endpoint(const Options& options)
    : info_(select_info(options)),
      window_(fitting_window(options, *info_)),
      fabric_(open_fabric(*info_)),
      domain_(open_domain(fabric_.get(), *info_)),
      queue_(open_queue(domain_.get(), window_)) {
  if (options.endpoint == EndpointType::kConnected) {
    open_passive();
  } else {
    open_datagram();
  }
}

void Endpoint::open_datagram() {
  addresses_ = open_addresses(domain_.get());
  ep_ = open_endpoint(domain_.get(), *info_);
  check_fabric(fi_ep_bind(ep_.get(), &addresses_->fid, 0), "fi_ep_bind of the address vector");
  check_fabric(fi_ep_bind(ep_.get(), &queue_->fid, FI_TRANSMIT | FI_RECV),
               "fi_ep_bind of the completion queue");
  check_fabric(fi_enable(ep_.get()), "fi_enable");
}

void Endpoint::open_passive() {
  fi_eq_attr attributes{};
  attributes.wait_obj = FI_WAIT_NONE;
  fid_eq* events = nullptr;
  check_fabric(fi_eq_open(fabric_.get(), &attributes, &events, nullptr), "fi_eq_open");
  events_.reset(events);
  fid_pep* passive = nullptr;
  check_fabric(fi_passive_ep(fabric_.get(), info_.get(), &passive, nullptr), "fi_passive_ep");
  passive_.reset(passive);
  check_fabric(fi_pep_bind(passive, &events->fid, 0), "fi_pep_bind");
  check_fabric(fi_listen(passive), "fi_listen");
}

void Endpoint::open_connected(fi_info& info) {
  ep_ = open_endpoint(domain_.get(), info);
  check_fabric(fi_ep_bind(ep_.get(), &events_->fid, 0), "fi_ep_bind of the event queue");
  check_fabric(fi_ep_bind(ep_.get(), &queue_->fid, FI_TRANSMIT | FI_RECV),
               "fi_ep_bind of the completion queue");
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

fi_addr_t Endpoint::meet(const std::vector<std::byte>& name, bool asks) {
  if (passive_ == nullptr) return add_peer(name);
  if (asks) {
    open_connected(*info_);
    check_fabric(fi_connect(ep_.get(), name.data(), nullptr, 0), "fi_connect");
  } else {
    const Info request = await_event(FI_CONNREQ);
    open_connected(*request);
    check_fabric(fi_accept(ep_.get(), nullptr, 0), "fi_accept");
  }
  await_event(FI_CONNECTED);
  return FI_ADDR_UNSPEC;
}

std::vector<std::byte> Endpoint::name() const {
  fid* const named = passive_ != nullptr ? &passive_->fid : &ep_->fid;
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
