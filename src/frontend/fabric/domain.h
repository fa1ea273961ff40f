// SPDX-License-Identifier: BSD-2-Clause
// What is an open access domain? fi_domain(3)
#pragma once

#include <rdma/fi_domain.h>

#include <atomic>
#include <functional>
#include <memory>
#include <optional>

#include "base/authorization.h"
#include "base/options.h"
#include "base/usable.h"
#include "device/device.h"
#include "device/engine_registry.h"
#include "device/port_totals.h"
#include "device/progress_thread.h"
#include "device/region_counters.h"
#include "eq.h"
#include "fabric.h"
#include "fid_object.h"
#include "instances.h"
#include "messaging/shared_ports.h"
#include "open_objects.h"
#include "places.h"
#include "raw_keys.h"
#include "terms.h"
#include "transfer_rules.h"
#include "triggers.h"

namespace weft::fabric {

class Av;
class Cq;
class Ep;

// What a domain asks of memory that is registered in it: fi_mr(3), mr_mode.
struct RegistrationMode {
  bool allocated = false;          // it is mapped (FI_MR_ALLOCATED)
  bool virtual_addresses = false;  // remote addresses are virtual addresses (FI_MR_VIRT_ADDR)
  bool provider_keys = false;      // keys are chosen by the provider (FI_MR_PROV_KEY, FI_MR_RAW)
  bool rma_events = false;         // counters may be bound to regions (FI_RMA_EVENT)
  bool short_keys = false;         // mr_key_size is 4 bytes or less
  bool flagged_events = false;     // to those that say so and are enabled later (FI_MR_RMA_EVENT)
  bool endpoints = false;          // each is bound to an endpoint (FI_MR_ENDPOINT)
  bool refreshed = false;          // unmapped memory is closed until a refresh (FI_MR_MMU_NOTIFY)
  bool devices = false;            // it may be memory of devices (FI_MR_HMEM)
  // The largest key that the application may choose: one of mr_key_size bytes, but FI_KEY_NOTAVAIL.
  std::uint64_t largest_key = 0;
  int bits = 0;  // of mr_mode

  // A requested key is within that range, or is not used.
  bool allows_key(std::uint64_t key) const { return provider_keys || key <= largest_key; }
};

// The object behind a fid_domain. Any thread may use it.
class Domain : public ChildObject<Domain, fid_domain, Fabric>, public Usable {
 public:
  // Opens the device for this domain. Errors: those of device::Device::get() and
  // device::ProgressThread::get().
  // -FI_EINVAL for attributes that fi_getinfo(3) never answers, -FI_ENOSPC as
  // Authorizations::take().
  static int open(Fabric& fabric, const fi_info& info, fid_domain** domain, void* context);

  // fi_domain_bind(3) of the event queue for what is opened here and has none of its own; with the
  // flag FI_REG_MR it is told of registrations. Errors: -FI_EBADFLAGS, -FI_EINVAL for a second one,
  // or one of another fabric.
  int bind(::fid* eq, std::uint64_t flags);
  // That one, or null.
  EventQueue* default_eq() const { return default_eq_.get(); }
  // The one that is told of registrations, or null.
  EventQueue* registration_eq() const { return registers_later_ ? default_eq() : nullptr; }

  Fabric& fabric() const { return parent(); }
  const std::shared_ptr<device::Device>& device() const { return device_; }
  const Options& options() const { return fabric().options(); }
  // What is offered here.
  const Terms& terms() const { return terms_; }
  // Of its endpoints, unless they have their own.
  std::uint32_t traffic_class() const { return traffic_class_; }
  // Number under which peers' keys are looked up.
  DomainId id() const { return id_; }
  // Drives the endpoints while the program does not: with FI_PROGRESS_AUTO for data, or the network
  // only, from the beginning; else from remote_peer_seen() or begin_control() on. Null where it is
  // not needed: without a network and with FI_PROGRESS_MANUAL for data and control.
  device::ProgressThread* progress_thread() const { return progress_thread_.get(); }
  // Called by an endpoint when its first remote peer is known. Retransmissions and acknowledgements
  // are due then while the program does not poll, too: the peer may wait for them.
  const std::function<void()>& remote_peer_seen() const { return remote_peer_seen_; }
  // Called before a control operation that ends later. With FI_PROGRESS_AUTO for control it ends
  // though the program makes no further call. Errors: those of device::ProgressThread::start().
  Status begin_control();
  // What its completion queues, counters and enabled endpoints join.
  device::EngineRegistry& engines() { return engines_; }
  // Those of its connected endpoints.
  messaging::SharedPorts& ports() { return ports_; }
  // The number of a new endpoint, which regions may be bound to; 0 where they serve all endpoints.
  std::uint32_t next_endpoint_number() {
    return registration_.endpoints ? last_endpoint_.fetch_add(1, std::memory_order_relaxed) + 1 : 0;
  }
  // Counts what peers do with regions.
  device::RegionCounters& region_counters() { return region_counters_; }
  // Objects that are open in it,
  OpenObjects<Ep>& endpoints() { return endpoints_; }
  OpenObjects<Cq>& queues() { return queues_; }
  OpenObjects<Av>& address_vectors() { return address_vectors_; }
  // and the counts of its endpoints.
  const std::shared_ptr<device::PortTotals>& port_totals() const { return port_totals_; }
  // The keys of its regions and those of its peers' regions that it has mapped.
  RawKeys& raw_keys() { return raw_keys_; }
  // Operations that wait for a counter.
  Triggers& triggers() { return triggers_; }
  // Which threads the locks of its objects keep out: all others; where one thread at a time moves
  // data, as the application says with FI_THREAD_DOMAIN, those that come through the biased lock.
  // These make control calls, wait for an event queue (which belongs to no domain, and drives
  // connected endpoints) or are the progress thread. With FI_PROGRESS_AUTO that one comes often:
  // all others.
  const Locking& locking() const { return locking_; }
  // The descriptors of local buffers; null where neither FI_MR_LOCAL nor FI_MR_HMEM is demanded.
  LocalDescriptors* local_descriptors() const { return local_descriptors_.get(); }
  // Its memory of devices; null without FI_HMEM.
  DomainMemory* memory() { return memory_.get(); }
  // The rules for transfers beyond the offer, or null.
  const TransferRules* transfer_rules() const { return rules_ ? &*rules_ : nullptr; }
  // Where what is opened here takes its place.
  DomainPlaces& places() { return places_; }
  // The authorization key of its endpoints and regions that have none of their own, or null.
  const AuthorizationPtr& authorization() const { return authorization_; }
  // What it asks of registrations.
  const RegistrationMode& registration() const { return registration_; }
  std::uint32_t api_version() const { return api_version_; }

 private:
  Domain(Fabric& fabric, const fi_info& info, std::shared_ptr<device::Device> device,
         std::shared_ptr<device::ProgressThread> progress_thread,
         std::unique_ptr<LocalDescriptors> local_descriptors, void* context);
  void begin_progress();
  Result<device::Engine*> background_work_of(EventQueue& eq);

  BoundEventQueue default_eq_;
  std::atomic<bool> registers_later_{false};
  const Terms terms_;
  const std::uint32_t traffic_class_;
  const std::shared_ptr<device::Device> device_;
  const std::shared_ptr<device::ProgressThread> progress_thread_;
  const bool automatic_control_;
  device::DrivenEngine registering_;  // the work of the default event queue, with FI_REG_MR
  const DomainId id_;
  AuthorizationPtr authorization_;  // since open()
  const std::unique_ptr<LocalDescriptors> local_descriptors_;
  const std::unique_ptr<DomainMemory> memory_;
  DomainPlaces places_;
  BiasedLock biased_lock_;
  const Locking locking_;
  const std::function<void()> remote_peer_seen_ = [this] { begin_progress(); };
  const RegistrationMode registration_;
  const std::uint32_t api_version_;
  device::EngineRegistry engines_;
  messaging::SharedPorts ports_;
  device::RegionCounters region_counters_;
  const std::shared_ptr<device::PortTotals> port_totals_ = std::make_shared<device::PortTotals>();
  OpenObjects<Ep> endpoints_;
  OpenObjects<Cq> queues_;
  OpenObjects<Av> address_vectors_;
  RawKeys raw_keys_;
  const std::optional<TransferRules> rules_;
  std::atomic<std::uint32_t> last_endpoint_{0};
  Triggers triggers_;
  const Instances::Listing listed_;
};

// fi_mr_reg(3), fi_mr_regv(3), fi_mr_regattr(3).
fi_ops_mr* mr_operations();

// fi_open_ops(3) of a domain: the interface of rdma/fi_ext_weft.h, whose version are the flags.
// Errors: -FI_EINVAL without a name or a place, -FI_ENOSYS for another name, or a version that this
// is not.
int open_domain_ops(fid* domain, const char* name, std::uint64_t version, void** operations,
                    void* context);
// fi_set_ops(3) of a domain with FI_HMEM: FI_SET_OPS_HMEM_OVERRIDE. Errors: -FI_ENOSYS for any
// other name or domain; those of DomainMemory::override(); -FI_EBUSY once a region exists;
// -FI_EBADFLAGS.
int set_domain_ops(fid* domain, const char* name, std::uint64_t flags, void* operations,
                   void* context);

// What the domain opens; arguments as in libfabric, checked for null. -FI_ENOSPC when as many are
// open as the domain's attributes say.
int open_av(Domain& domain, fi_av_attr* attributes, fid_av** av, void* context);
int open_cq(Domain& domain, fi_cq_attr* attributes, fid_cq** cq, void* context);
int open_counter(Domain& domain, fi_cntr_attr* attributes, fid_cntr** cntr, void* context);
int open_poll_set(Domain& domain, fi_poll_attr* attributes, fid_poll** set);
int open_endpoint(Domain& domain, fi_info* info, fid_ep** ep, void* context);
// `attributes` may be null. Errors: -FI_EINVAL for attributes beyond what weft offers.
int open_shared_transmit(Domain& domain, const fi_tx_attr* attributes, fid_stx** stx,
                         void* context);
int open_shared_receive(Domain& domain, const fi_rx_attr* attributes, fid_ep** ep, void* context);

}  // namespace weft::fabric
