// SPDX-License-Identifier: BSD-2-Clause
// What is an endpoint to a libfabric program? fi_endpoint(3)
#pragma once

#include <rdma/fi_cm.h>
#include <rdma/fi_endpoint.h>

#include <array>
#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "av.h"
#include "connector.h"
#include "counter.h"
#include "cq.h"
#include "domain.h"
#include "eq.h"
#include "handle.h"
#include "messaging/endpoint.h"
#include "offer.h"
#include "os/udp_port.h"
#include "shared_contexts.h"

namespace weft::fabric {

// The object behind a fid_ep. Any thread may control it, while one moves data as its domain's
// threading model says.
class Ep : public Handle, public Usable {
 public:
  // Binds the address of `info`, or takes that of the passive endpoint, or the request, that its
  // handle stands for. Errors: -FI_EINVAL for an info that this domain cannot serve, -FI_ENOSPC
  // without a place in the domain for it, -FI_EBUSY for a passive endpoint that listens,
  // -FI_EADDRINUSE and others of bind(2).
  static int open(Domain& domain, const fi_info& info, fid_ep** ep, void* context);
  // Ends what is pending without a report, and frees the object.
  ~Ep();

  // The endpoint that `ep` is or is an alias of.
  static Ep& from(fid_ep* ep) { return *Handle::from(ep).endpoint(); }
  static Ep& from(struct fid* fid) { return from(reinterpret_cast<fid_ep*>(fid)); }

  // fi_ep_bind(3). Errors: -FI_EOPBADSTATE after enable(), -FI_EINVAL, -FI_EBADFLAGS, -FI_ENOSPC
  // for a shared context that has as many endpoints as it may have.
  int bind(struct fid* object, std::uint64_t flags);
  // fi_enable(3). Errors: -FI_ENOAV, -FI_ENOEQ, -FI_ENOCQ, -FI_EOPBADSTATE, those of making it
  // reachable.
  int enable();

  // To be called before the destructor: when it returns 0 no peer writes into a receive buffer, nor
  // will. Error: -FI_EBUSY after 2 s, when a stopped peer is in the middle of that; the endpoint is
  // then as it was.
  int quiesce();

  // By which regions that are bound to it know it (FI_MR_ENDPOINT); 0 where none are bound.
  std::uint32_t number() const { return number_; }
  // The connection of an FI_EP_MSG; nullptr for others.
  Connector* connector() { return connector_.get(); }
  // The address with the port that it has; a wildcard host is replaced by a usable one.
  os::SocketAddress name() const;
  // fi_getname(3). An endpoint of a connection request has the address that the request was sent
  // to, as a socket that accept(2) returns.
  os::SocketAddress public_name() const;
  // fi_setname(3). Errors: -FI_EOPBADSTATE after enable(), those of bind(2).
  int rename(const os::SocketAddress& address);

  // Its aliases follow what becomes of it.
  void add_alias(Handle& alias);
  void remove_alias(Handle& alias);

  // Calls look(core) with what runs in it, which does not change meanwhile; null before enable().
  template <class Look>
  auto inspect(Look look) const {
    const std::lock_guard guard(control_);
    return look(core_.get());
  }

  // The size of its transmit context, own or shared, and fi_tx_size_left(3) of one that runs.
  std::size_t tx_size() const;
  std::size_t tx_size_left() const;
  bool is_connected() const { return connector_ != nullptr; }
  // FI_OPT_FI_HMEM_P2P: what the program has asked for.
  std::atomic<int>& peer_to_peer() { return peer_to_peer_; }
  // Where a running endpoint of datagrams reports: the event queue that is bound, or its domain's;
  // null if there is none.
  EventQueue* event_queue() {
    return bound_.eq.get() != nullptr ? bound_.eq.get() : domain_.default_eq();
  }

 private:
  // What is bound to it; null: nothing.
  struct BoundObjects {
    Av* av = nullptr;
    BoundEventQueue eq;
    Cq* tx_cq = nullptr;
    Cq* rx_cq = nullptr;
    std::array<Cntr*, static_cast<std::size_t>(messaging::CounterEvent::kCount)> counters{};
    SharedTransmit* shared_tx = nullptr;
    SharedReceive* shared_rx = nullptr;

    Cntr*& counter(messaging::CounterEvent event) {
      return counters[static_cast<std::size_t>(event)];
    }
    bool counts(messaging::CounterEvent event) const {
      return counters[static_cast<std::size_t>(event)] != nullptr;
    }
  };

  Ep(Domain& domain, const fi_info& info, const TypeOffer& offer, os::UdpPort port, void* context);
  static int begin(Domain& domain, const fi_info& info, Beginning& beginning);
  static bool take_places(DomainPlaces& from, const fi_ep_attr& attributes,
                          std::vector<Places::Reservation>& places);
  int bind_cq(Cq& cq, std::uint64_t flags);
  int bind_counter(Cntr& counter, std::uint64_t flags);
  int bind_eq(EventQueue& eq, std::uint64_t flags);
  template <class Object>
  int bind_one(Object& object, Object*& place, bool has_place, std::uint64_t flags,
               Places* places = nullptr);
  void start_running();
  void log_statistics() const;
  int check_bindings() const;
  ServedAccess served() const;
  Links links() const;
  template <class Join, class Leave>
  Status be_driven_by(const void* driver, Join join, Leave leave);
  Status attach();
  std::vector<device::EngineGroup*> groups();
  void detach();
  messaging::EndpointSetup setup();
  Result<std::unique_ptr<messaging::Endpoint>> open_core();

  const std::uint32_t number_;
  // At most kLargestQueueSize; there are many endpoints.
  const std::uint32_t tx_size_;
  const std::uint32_t rx_size_;
  const std::uint8_t traffic_class_;
  const bool shares_tx_;
  const bool shares_rx_;
  bool keeps_port_ = false;  // the program has chosen the port
  std::atomic<std::size_t> min_multi_receive_here_{kMinMultiReceive};
  std::atomic<int> peer_to_peer_{FI_HMEM_P2P_ENABLED};
  mutable std::mutex control_;  // of bind(), enable() and rename(), and of what those set
  std::vector<Use> uses_;
  std::vector<Places::Reservation> places_;
  os::SocketAddress host_;                     // its address, without a port
  std::optional<os::UdpPort> port_;            // none for an endpoint that shares that of others
  AuthorizationPtr authorization_;             // its key, or the domain's; null: none
  std::optional<os::SocketAddress> listener_;  // of the request that it was opened for
  BoundObjects bound_;
  std::mutex aliases_lock_;
  std::vector<Handle*> aliases_;
  std::unique_ptr<Connector> connector_;
  std::unique_ptr<messaging::Endpoint> core_;
  std::vector<std::function<void()>> leaves_;  // end what attach() began
  std::optional<OpenObjects<Ep>::Listing> listed_;
};

// Tables of operations, each in a file of its own.
fi_ops* ep_fid_operations();
fi_ops_cm* datagram_cm_operations();
fi_ops_cm* connection_cm_operations();
fi_ops_rma* rma_operations();
fi_ops_atomic* atomic_operations();

// fi_join(3) of an endpoint.
int join_group(fid_ep* ep, const void* address, std::uint64_t flags, fid_mc** mc, void* context);

}  // namespace weft::fabric
