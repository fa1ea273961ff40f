// SPDX-License-Identifier: BSD-2-Clause
// What is an open access domain? fi_domain(3)
#include "domain.h"

#include "atomic_query.h"
#include "authorization.h"
#include "boundary.h"
#include "c_enum.h"
#include "contract.h"
#include "deferral.h"
#include "eq.h"
#include "fid_object.h"
#include "info.h"
#include "internal.h"
#include "log.h"
#include "negotiate.h"
#include "operations.h"
#include "os/barrier.h"

namespace weft::fabric {
namespace {

int av_open(fid_domain* domain, fi_av_attr* attributes, fid_av** av, void* context) {
  if (attributes == nullptr || av == nullptr) return -FI_EINVAL;
  return at_c_border([&] { return open_av(Domain::from(domain), attributes, av, context); });
}

int cq_open(fid_domain* domain, fi_cq_attr* attributes, fid_cq** cq, void* context) {
  if (cq == nullptr) return -FI_EINVAL;
  fi_cq_attr defaults{};
  if (attributes == nullptr) attributes = &defaults;
  return at_c_border([&] { return open_cq(Domain::from(domain), attributes, cq, context); });
}

int cntr_open(fid_domain* domain, fi_cntr_attr* attributes, fid_cntr** cntr, void* context) {
  if (cntr == nullptr) return -FI_EINVAL;
  fi_cntr_attr defaults{};
  if (attributes == nullptr) attributes = &defaults;
  return at_c_border([&] { return open_counter(Domain::from(domain), attributes, cntr, context); });
}

int poll_open(fid_domain* domain, fi_poll_attr* attributes, fid_poll** set) {
  if (set == nullptr) return -FI_EINVAL;
  return at_c_border([&] { return open_poll_set(Domain::from(domain), attributes, set); });
}

int endpoint(fid_domain* domain, fi_info* info, fid_ep** ep, void* context) {
  if (info == nullptr || ep == nullptr || info->ep_attr == nullptr) return -FI_EINVAL;
  return at_c_border([&] { return open_endpoint(Domain::from(domain), info, ep, context); });
}

// The flags of fi_endpoint2(3) are for peer providers.
int endpoint_with_flags(fid_domain* domain, fi_info* info, fid_ep** ep, std::uint64_t flags,
                        void* context) {
  return flags != 0 ? -FI_EBADFLAGS : endpoint(domain, info, ep, context);
}

int stx_context(fid_domain* domain, fi_tx_attr* attributes, fid_stx** stx, void* context) {
  if (stx == nullptr) return -FI_EINVAL;
  return at_c_border(
      [&] { return open_shared_transmit(Domain::from(domain), attributes, stx, context); });
}

int srx_context(fid_domain* domain, fi_rx_attr* attributes, fid_ep** ep, void* context) {
  if (ep == nullptr) return -FI_EINVAL;
  return at_c_border(
      [&] { return open_shared_receive(Domain::from(domain), attributes, ep, context); });
}

int query_atomic(fid_domain*, fi_datatype type, fi_op op, fi_atomic_attr* attributes,
                 std::uint64_t flags) {
  return fabric::query_atomic(type, op, attributes, flags);
}

int map_raw_key(Domain& domain, const struct fi_mr_map_raw* wish) {
  if (wish == nullptr || wish->raw_key == nullptr || wish->key == nullptr) return -FI_EINVAL;
  if (wish->flags != 0) return -FI_EBADFLAGS;
  if (wish->key_size != domain.raw_keys().size()) return -FI_EINVAL;
  return at_c_border([&] {
    *wish->key = domain.raw_keys().map({wish->raw_key, wish->key_size}).v;
    return 0;
  });
}

int unmap_key(Domain& domain, const std::uint64_t* key) {
  if (key == nullptr) return -FI_EINVAL;
  return domain.raw_keys().unmap(RegionKey{*key}) ? 0 : -FI_EINVAL;
}

int control_domain(fid* fid, int command, void* argument) {
  Domain& domain = Domain::from(fid);
  switch (command) {
    case FI_MAP_RAW_MR:
      return map_raw_key(domain, static_cast<const struct fi_mr_map_raw*>(argument));
    case FI_UNMAP_KEY:
      return unmap_key(domain, static_cast<const std::uint64_t*>(argument));
    default:
      return control_work(domain, command, argument);
  }
}

// fi_mr(3): a program unmaps all raw keys first. A forked child cannot.
int close_domain(fid* fid) {
  const RawKeys& keys = Domain::from(fid).raw_keys();
  return keys.none_mapped() || keys.inherited() ? close_object<Domain>(fid) : -FI_EBUSY;
}

constexpr FidCalls kDomainCalls{.close = close_domain,
                                .bind = bind_object<Domain>,
                                .control = control_domain,
                                .ops_open = open_domain_ops,
                                .ops_set = set_domain_ops};

fi_ops_domain* domain_operations() {
  return operations_with<fi_ops_domain>([](fi_ops_domain& table) {
    table.av_open = av_open;
    table.cq_open = cq_open;
    table.cntr_open = cntr_open;
    table.poll_open = poll_open;
    table.endpoint = endpoint;
    table.endpoint2 = endpoint_with_flags;
    table.stx_ctx = stx_context;
    table.srx_ctx = srx_context;
    table.query_atomic = query_atomic;
  });
}

constexpr std::size_t kShortKeySize = 4;  // bytes, of keys that the region table chooses

bool wants(const fi_info& info, int bit) { return (mr_bits(info.domain_attr->mr_mode) & bit) != 0; }

// Keys that the provider chooses have all bytes. fi_domain(3): 0 is the provider's choice.
RawKeys raw_keys_for(const fi_info& info, const Terms& terms) {
  const std::size_t wanted = info.domain_attr->mr_key_size;
  const bool whole = wanted == 0 || wants(info, FI_MR_PROV_KEY | FI_MR_RAW);
  return {wants(info, FI_MR_RAW), whole ? terms.mr_key_size : wanted};
}

// fi_domain(3): a key that an application chooses fits into mr_key_size bytes.
std::uint64_t largest_key_of(const fi_info& info, const Terms& terms) {
  const std::size_t wanted = info.domain_attr->mr_key_size;
  const std::size_t size = wanted != 0 ? wanted : terms.mr_key_size;
  const std::uint64_t most = FI_KEY_NOTAVAIL - 1;
  return size >= sizeof most ? most : (std::uint64_t{1} << (8 * size)) - 1;
}

std::optional<TransferRules> rules_of(const Terms& terms, LocalDescriptors* descriptors,
                                      const DomainMemory* memory, const RawKeys& raw_keys) {
  if (!TransferRules::has_any(terms) && memory == nullptr) return std::nullopt;
  return std::optional<TransferRules>(std::in_place, terms, descriptors, memory,
                                      raw_keys.required() ? &raw_keys : nullptr);
}

// Null where neither FI_MR_LOCAL nor FI_MR_HMEM is demanded.
Result<std::unique_ptr<LocalDescriptors>> descriptors_for(const Terms& terms, const fi_info& info,
                                                          device::Device& device) {
  const bool wanted = (terms.mr_modes & FI_MR_LOCAL) != 0 || wants(info, FI_MR_HMEM);
  return wanted ? LocalDescriptors::open(device) : std::unique_ptr<LocalDescriptors>();
}

bool is_automatic(const fi_info& info) {
  return number_of(info.domain_attr->data_progress) == FI_PROGRESS_AUTO;
}

Locking locking_for(const fi_info& info, BiasedLock& biased_lock) {
  const bool one_thread = number_of(info.domain_attr->threading) == FI_THREAD_DOMAIN;
  const bool biased = one_thread && !is_automatic(info) && os::can_raise_process_barriers();
  return biased ? Locking(biased_lock) : Locking(true);
}

Instance instance_of(Fabric& fabric, const fi_info& info, Domain& domain) {
  const char* const name = info.domain_attr->name;
  Instance instance{&fabric, &domain, fabric.name(), name != nullptr ? name : "",
                    *info.domain_attr};
  instance.attributes.domain = nullptr;
  instance.attributes.name = nullptr;
  instance.attributes.auth_key = nullptr;
  instance.attributes.auth_key_size = 0;
  return instance;
}

Status acceptable(const Fabric& fabric, const fi_info& info) {
  const Options& options = fabric.options();
  if (Status ok = check_domain(fabric.requested_api(), info, terms_of(options)); !ok) return ok;
  const char* const name = info.domain_attr->name;
  return name == nullptr ? Status() : check_domain_name(name, fabric.name(), options.interface);
}

}  // namespace

Domain::Domain(Fabric& fabric, const fi_info& info, std::shared_ptr<device::Device> device,
               std::shared_ptr<device::ProgressThread> progress_thread,
               std::unique_ptr<LocalDescriptors> local_descriptors, void* context)
    : ChildObject(FI_CLASS_DOMAIN, fabric, context, fid_operations<kDomainCalls>()),
      terms_(terms_of(fabric.options())),
      traffic_class_(info.domain_attr->tclass),
      device_(std::move(device)),
      progress_thread_(std::move(progress_thread)),
      automatic_control_(controls_automatically(info.domain_attr, terms_.control_progress)),
      id_(device_->new_domain()),
      local_descriptors_(std::move(local_descriptors)),
      memory_(wants(info, FI_MR_HMEM) ? std::make_unique<DomainMemory>() : nullptr),
      places_(*info.domain_attr, terms_),
      locking_(locking_for(info, biased_lock_)),
      registration_{wants(info, FI_MR_ALLOCATED),
                    wants(info, FI_MR_VIRT_ADDR),
                    wants(info, FI_MR_PROV_KEY | FI_MR_RAW),
                    (info.caps & FI_RMA_EVENT) != 0,
                    terms_.mr_key_size <= kShortKeySize,
                    wants(info, FI_MR_RMA_EVENT),
                    wants(info, FI_MR_ENDPOINT),
                    wants(info, FI_MR_MMU_NOTIFY),
                    wants(info, FI_MR_HMEM),
                    largest_key_of(info, terms_),
                    mr_bits(info.domain_attr->mr_mode)},
      api_version_(fabric.requested_api()),
      raw_keys_(raw_keys_for(info, terms_)),
      rules_(rules_of(terms_, local_descriptors_.get(), memory_.get(), raw_keys_)),
      triggers_(engines_, progress_thread_.get(), locking_),
      listed_(instance_of(fabric, info, *this)) {
  ops = domain_operations();
  mr = mr_operations();
}

int Domain::open(Fabric& fabric, const fi_info& info, fid_domain** domain, void* context) {
  if (Status ok = acceptable(fabric, info); !ok) {
    log_warning(FI_LOG_DOMAIN, "cannot open the domain: {}", ok.error().message);
    return fabric_status(ok.error());
  }
  const Options& options = fabric.options();
  auto device = device::Device::get(options.runtime_dir);
  if (!device) {
    log_warning(FI_LOG_DOMAIN, "cannot open the device: {}", device.error().message);
    return fabric_status(device.error());
  }
  auto key = authorization_in(*info.domain_attr, fabric.requested_api(), *device.value(), nullptr);
  if (!key) {
    log_warning(FI_LOG_DOMAIN, "cannot open the domain: {}", key.error().message);
    return fabric_status(key.error());
  }
  std::shared_ptr<device::ProgressThread> progress_thread;
  const Terms terms = terms_of(options);
  const bool controls = controls_automatically(info.domain_attr, terms.control_progress);
  if (is_automatic(info) || controls || options.links.udp) {
    auto thread = device::ProgressThread::get();
    if (!thread) return fabric_status(thread.error());
    progress_thread = std::move(thread).value();
  }
  // With the network as the only link the first peer will be remote.
  if (is_automatic(info) || !options.links.shm) {
    if (Status ok = progress_thread->start(); !ok) return fabric_status(ok.error());
  }
  auto descriptors = descriptors_for(terms, info, *device.value());
  if (!descriptors) return fabric_status(descriptors.error());
  auto* const created =
      new Domain(fabric, info, std::move(device).value(), std::move(progress_thread),
                 std::move(descriptors).value(), context);
  created->authorization_ = std::move(key).value();
  *domain = created;
  return 0;
}

// Called from within endpoints.
void Domain::begin_progress() {
  if (Status ok = progress_thread_->start(); !ok) {
    log_warning(FI_LOG_DOMAIN, "{}: peers on other hosts wait while this program does not poll",
                ok.error().message);
  }
}

Status Domain::begin_control() { return automatic_control_ ? progress_thread_->start() : Status(); }

// Null where the program registers when it reads the queue.
Result<device::Engine*> Domain::background_work_of(EventQueue& eq) {
  if (!automatic_control_) return nullptr;
  if (Status ok = progress_thread_->start(); !ok) return ok.error();
  return eq.background_work();
}

int Domain::bind(::fid* object, std::uint64_t flags) {
  if (object->fclass != FI_CLASS_EQ) return -FI_EINVAL;
  if ((flags & ~FI_REG_MR) != 0) return -FI_EBADFLAGS;
  EventQueue& eq = EventQueue::from(object);
  if (&eq.fabric() != &fabric()) return -FI_EINVAL;
  const bool later = (flags & FI_REG_MR) != 0;
  const Result<device::Engine*> work = later ? background_work_of(eq) : nullptr;
  if (!work) return fabric_status(work.error());
  device::DrivenEngine registering;
  if (work.value() != nullptr) registering = {progress_thread_, *work.value()};
  if (const int failed = default_eq_.bind(eq)) return failed;
  registering_ = std::move(registering);
  registers_later_ = later;
  return 0;
}

int open_domain(Fabric& fabric, fi_info* info, fid_domain** domain, void* context) {
  return at_c_border([&] { return Domain::open(fabric, *info, domain, context); });
}

}  // namespace weft::fabric
