// SPDX-License-Identifier: BSD-2-Clause
// What one process opens: fabric, domain, completion queue, endpoint and what leads to its peer.
#pragma once

#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>

#include <cstddef>
#include <string>
#include <vector>

#include "fabric_object.h"
#include "options.h"

namespace weft::bench {

// One endpoint whose sends and receives both complete to one queue, as MPI libraries do it: polling
// costs one call. FI_EP_RDM: enabled, with an address vector. FI_EP_MSG: there is none before
// connect() or accept(), only a passive one that listens. One thread (FI_THREAD_DOMAIN).
class Endpoint {
 public:
  // Opens what select_info() chose; room in the queue for two windows. Fatal on any error.
  explicit Endpoint(const Options& options);

  fid_ep* ep() const { return ep_.get(); }
  fid_cq* queue() const { return queue_.get(); }
  fid_domain* domain() const { return domain_.get(); }
  const fi_info& info() const { return *info_; }

  std::string provider() const { return info_->fabric_attr->prov_name; }
  // The window, cut to what the endpoint's queues hold.
  std::uint64_t window() const { return window_; }
  bool needs_mr(int mode) const { return (info_->domain_attr->mr_mode & mode) != 0; }

  // fi_getname(3): opaque bytes that meet() of the other process takes.
  std::vector<std::byte> name() const;
  // Makes the endpoint of that name the peer, and returns its number. Of two that are connected
  // one asks. Fatal on any error.
  fi_addr_t meet(const std::vector<std::byte>& name, bool asks);

 private:
  void open_datagram();
  void open_passive();
  void open_connected(fi_info& info);
  Info await_event(std::uint32_t event);
  fi_addr_t add_peer(const std::vector<std::byte>& name) const;

  Info info_;
  std::uint64_t window_;
  FabricObject<fid_fabric> fabric_;
  FabricObject<fid_domain> domain_;
  FabricObject<fid_cq> queue_;
  FabricObject<fid_av> addresses_;
  FabricObject<fid_eq> events_;
  FabricObject<fid_pep> passive_;
  FabricObject<fid_ep> ep_;
};

}  // namespace weft::bench
