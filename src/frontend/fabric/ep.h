// SPDX-License-Identifier: BSD-2-Clause
// What is an endpoint to a libfabric program? fi_endpoint(3)
#pragma once

#include <rdma/fi_cm.h>
#include <rdma/fi_endpoint.h>

#include <array>
#include <atomic>
#include <memory>
#include <optional>
#include <vector>

#include "av.h"
#include "connector.h"
#include "counter.h"
#include "cq.h"
#include "domain.h"
#include "eq.h"
#include "messaging/endpoint.h"
#include "offer.h"
#include "os/udp_port.h"

namespace weft::fabric {

// The object behind a fid_ep.
class Endpoint : public fid_ep, public Usable {
 public:
  // Binds the address of `info`, or takes that of the passive endpoint, or the request, that its
  // handle stands for. Errors: -FI_EINVAL for an info that this domain cannot serve, -FI_EBUSY for
  // a passive endpoint that listens, -FI_EADDRINUSE and others of bind(2).
  static int open(Domain& domain, const fi_info& info, fid_ep** ep, void* context);
  // Ends what is pending without a report, and frees the object.
  ~Endpoint();

  // The object behind `ep`.
  static Endpoint& from(fid_ep* ep) { return *static_cast<Endpoint*>(ep); }
  static Endpoint& from(struct fid* fid) { return from(reinterpret_cast<fid_ep*>(fid)); }

  // fi_ep_bind(3). Errors: -FI_EOPBADSTATE after enable(), -FI_EINVAL, -FI_EBADFLAGS.
  int bind(struct fid* object, std::uint64_t flags);
  // fi_enable(3). Errors: -FI_ENOAV, -FI_ENOEQ, -FI_ENOCQ, -FI_EOPBADSTATE, those of making it
  // reachable.
  int enable();

  // The running endpoint; nullptr before enable().
  messaging::Endpoint* core() { return core_.get(); }
  // The connection of an FI_EP_MSG; nullptr for others.
  Connector* connector() { return connector_.get(); }
  // The address with the port that it has; a wildcard host is replaced by a usable one.
  os::SocketAddress name() const;
  // fi_setname(3). Errors: -FI_EOPBADSTATE after enable(), those of bind(2).
  int rename(const os::SocketAddress& address);

  // Flags for calls that take none, and how calls report.
  std::uint64_t tx_flags = 0;
  std::uint64_t rx_flags = 0;
  bool tx_selective() const { return tx_selective_; }
  bool rx_selective() const { return rx_selective_; }
  // A receive's source counts (FI_DIRECTED_RECV).
  bool directed() const { return (caps_ & FI_DIRECTED_RECV) != 0; }
  // Buffers may be posted with FI_MULTI_RECV.
  bool multi_receive() const { return (caps_ & FI_MULTI_RECV) != 0; }
  // FI_OPT_MIN_MULTI_RECV, for receives posted from now on.
  std::atomic<std::size_t> min_multi_receive{kMinMultiReceive};
  std::size_t tx_size() const { return tx_size_; }
  std::uint64_t caps() const { return caps_; }
  // What endpoints of this type can.
  const TypeOffer& offer() const { return offer_; }
  // Of a datagram endpoint: the path MTU of its address.
  std::size_t max_message_size() const { return max_message_size_; }
  // The bound event queue, or null.
  EventQueue* event_queue() { return eq_; }
  std::size_t rx_size() const { return rx_size_; }

 private:
  Endpoint(Domain& domain, const fi_info& info, const TypeOffer& offer, os::UdpPort port,
           void* context);
  static int begin(Domain& domain, const fi_info& info, Beginning& beginning);
  int bind_cq(CompletionQueue& cq, std::uint64_t flags);
  int bind_counter(Counter& counter, std::uint64_t flags);
  int bind_av(Av& av, std::uint64_t flags);
  int bind_eq(EventQueue& eq, std::uint64_t flags);
  int check_bindings() const;
  Status attach();
  std::vector<device::EngineGroup*> groups();

  Domain& domain_;
  const TypeOffer& offer_;
  const std::uint64_t caps_;
  const std::size_t tx_size_;
  const std::size_t rx_size_;
  std::vector<Use> uses_;
  std::optional<os::UdpPort> port_;
  std::size_t max_message_size_;
  Av* av_ = nullptr;
  EventQueue* eq_ = nullptr;
  CompletionQueue* tx_cq_ = nullptr;
  CompletionQueue* rx_cq_ = nullptr;
  std::array<Counter*, static_cast<std::size_t>(messaging::Event::kCount)> counters_{};
  bool tx_selective_ = false;
  bool rx_selective_ = false;
  std::unique_ptr<Connector> connector_;
  std::unique_ptr<messaging::Endpoint> core_;
};

// Tables of operations, each in a file of its own.
fi_ops* ep_fid_operations();
fi_ops_ep* ep_operations();
fi_ops_cm* datagram_cm_operations();
fi_ops_cm* connection_cm_operations();
fi_ops_msg* message_operations();
fi_ops_msg* datagram_operations();
fi_ops_tagged* tagged_operations();
fi_ops_rma* rma_operations();
fi_ops_atomic* atomic_operations();

// fi_join(3) of an endpoint.
int join_group(fid_ep* ep, const void* address, std::uint64_t flags, fid_mc** mc, void* context);

}  // namespace weft::fabric
