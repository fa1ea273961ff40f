// SPDX-License-Identifier: BSD-2-Clause
// What one process opens: fabric, domain, completion queue, address vector and endpoint.
#pragma once

#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>

#include <cstddef>
#include <string>
#include <vector>

#include "fabric_object.h"
#include "options.h"

namespace weft::bench {

// One enabled FI_EP_RDM endpoint whose sends and receives both complete to one queue, as MPI
// libraries do it: polling costs one call. One thread (FI_THREAD_DOMAIN).
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

  // fi_getname(3): opaque bytes that add_peer() of the other process takes.
  std::vector<std::byte> name() const;
  fi_addr_t add_peer(const std::vector<std::byte>& name) const;

 private:
  Info info_;
  std::uint64_t window_;
  FabricObject<fid_fabric> fabric_;
  FabricObject<fid_domain> domain_;
  FabricObject<fid_cq> queue_;
  FabricObject<fid_av> addresses_;
  FabricObject<fid_ep> ep_;
};

}  // namespace weft::bench
