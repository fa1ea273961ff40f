// SPDX-License-Identifier: BSD-2-Clause
// How the endpoint is opened and given its peer.
#include "endpoint.h"

#include <rdma/fi_cm.h>
#include <rdma/fi_eq.h>
#include <rdma/fi_errno.h>

#include <algorithm>

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
      queue_(open_queue(domain_.get(), window_)),
      addresses_(open_addresses(domain_.get())),
      ep_(open_endpoint(domain_.get(), *info_)) {
  check_fabric(fi_ep_bind(ep_.get(), &addresses_->fid, 0), "fi_ep_bind of the address vector");
  check_fabric(fi_ep_bind(ep_.get(), &queue_->fid, FI_TRANSMIT | FI_RECV),
               "fi_ep_bind of the completion queue");
  check_fabric(fi_enable(ep_.get()), "fi_enable");
}

std::vector<std::byte> Endpoint::name() const {
  std::size_t length = 0;
  const int rc = fi_getname(&ep_->fid, nullptr, &length);
  if (rc != -FI_ETOOSMALL) check_fabric(rc, "fi_getname");
  std::vector<std::byte> name(length);
  check_fabric(fi_getname(&ep_->fid, name.data(), &length), "fi_getname");
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
