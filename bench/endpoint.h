// SPDX-License-Identifier: BSD-2-Clause
// What one process opens: fabric, domain, what tells completions, and what leads to its peers.
#pragma once

#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "access_domain.h"
#include "fabric_object.h"
#include "options.h"

namespace weft::bench {

// How operations reach a peer: the endpoint to post them to, and the number to post with them.
struct Peer {
  fid_ep* ep;
  fi_addr_t address;
};

// Endpoints whose sends and receives all complete to one queue, as MPI libraries do it: polling
// costs one call. FI_EP_RDM, FI_EP_DGRAM: one endpoint, enabled, with an address vector. FI_EP_MSG:
// a passive one that listens, and one for each peer that was met. With CountBy::kCounters, two
// counters tell what completed, and errors alone reach the queue. One thread.
class Endpoint {
 public:
  // Room in the queue for two windows. Fatal on any error. In a domain of its own, or in one that
  // is shared with others.
  explicit Endpoint(const Options& options) : Endpoint(options, open_domain(options)) {}
  Endpoint(const Options& options, std::shared_ptr<AccessDomain> opened);

  fid_domain* domain() const { return opened_->domain.get(); }
  fid_cq* queue() const { return queue_.get(); }
  // What this process started and what it received; nullptr with CountBy::kQueue.
  fid_cntr* sent_counter() const { return sent_counter_.get(); }
  fid_cntr* received_counter() const { return received_counter_.get(); }
  // FI_EP_MSG: where its connections report.
  fid_eq* events() const { return events_.get(); }
  const fi_info& info() const { return *info_; }

  std::string provider() const { return info_->fabric_attr->prov_name; }
  // The window, cut to what the endpoint's queues hold.
  std::uint64_t window() const { return window_; }
  bool needs_mr(int mode) const { return (info_->domain_attr->mr_mode & mode) != 0; }
  // For a region, where the provider does not choose keys: no other one of the domain has it.
  std::uint64_t new_key() const { return ++opened_->last_key; }
  // Binds a region to the endpoint, where FI_MR_ENDPOINT asks for it.
  void adopt(fid_mr* region) const;

  // fi_getname(3): opaque bytes that meet() of the other process takes.
  std::vector<std::byte> name() const;
  // Makes the endpoint of that name a peer. Of two that are connected one asks. Fatal on any error.
  Peer meet(const std::vector<std::byte>& name, bool asks);
  // FI_EP_MSG: a further endpoint, enabled, for the request that came with FI_CONNREQ, or with
  // nullptr to ask for a connection. Lives as long as this does. Fatal on any error.
  fid_ep* open_connection(fi_info* request, void* context);

 private:
  void open_counters();
  void open_unconnected(const Options& options);
  void open_passive();
  FabricObject<fid_ep> open_endpoint(fi_info& info, fid& companion, void* context);
  Peer connect(const std::vector<std::byte>& name, bool asks);
  Info await_event(std::uint32_t event);
  fi_addr_t add_peer(const std::vector<std::byte>& name) const;

  const std::shared_ptr<AccessDomain> opened_;
  Info info_;
  std::uint64_t window_;
  std::size_t least_multi_receive_;  // FI_OPT_MIN_MULTI_RECV; 0: receives take one message each
  FabricObject<fid_cq> queue_;
  FabricObject<fid_cntr> sent_counter_;
  FabricObject<fid_cntr> received_counter_;
  FabricObject<fid_av> addresses_;
  FabricObject<fid_eq> events_;
  FabricObject<fid_pep> passive_;
  std::vector<FabricObject<fid_ep>> endpoints_;
};

}  // namespace weft::bench
