// SPDX-License-Identifier: BSD-2-Clause
// How is memory registered? fi_mr(3)
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "boundary.h"
#include "counter.h"
#include "domain.h"
#include "fid_object.h"
#include "handle.h"
#include "log.h"
#include "operations.h"
#include "os/process_memory.h"

namespace weft::fabric {
namespace {

constexpr std::uint64_t kKnownAccess =
    FI_SEND | FI_RECV | FI_READ | FI_WRITE | FI_REMOTE_READ | FI_REMOTE_WRITE | FI_COLLECTIVE;

// Programs pass the capabilities of their endpoints among the access flags. These bits grant
// nothing.
constexpr std::uint64_t kIgnoredAccess =
    FI_MSG | FI_RMA | FI_TAGGED | FI_ATOMIC | FI_MULTICAST | FI_MULTI_RECV | FI_TRIGGER | FI_FENCE |
    FI_HMEM | FI_VARIABLE_MSG | FI_RMA_PMEM | FI_SOURCE_ERR | FI_LOCAL_COMM | FI_REMOTE_COMM |
    FI_SHARED_AV | FI_RMA_EVENT | FI_SOURCE | FI_NAMED_RX_CTX | FI_DIRECTED_RECV;

constexpr std::uint32_t kFirstApiWithAuthKeys = FI_VERSION(1, 5);

Access rights(std::uint64_t access) {
  Access result = Access::kNone;
  if (access & FI_SEND) result = result | Access::kSend;
  if (access & FI_RECV) result = result | Access::kReceive;
  if (access & FI_READ) result = result | Access::kRead;
  if (access & FI_WRITE) result = result | Access::kWrite;
  if (access & FI_REMOTE_READ) result = result | Access::kRemoteRead;
  if (access & FI_REMOTE_WRITE) result = result | Access::kRemoteWrite;
  return result;
}

// A region that no peer may access needs no key, and no place in the table.
bool is_exposed(const fi_mr_attr& attributes) {
  return (attributes.access & (FI_REMOTE_READ | FI_REMOTE_WRITE)) != 0;
}

// The object behind a fid_mr. It is enabled from the beginning (FI_MR_RMA_EVENT is never required);
// fi_mr_enable only ends the time for bindings.
class MemoryRegion : public ChildObject<MemoryRegion, fid_mr, Domain> {
 public:
  MemoryRegion(Domain& domain, const std::optional<memory::Registration>& registration,
               std::unique_ptr<LocalDescriptor> descriptor, void* context)
      : ChildObject(FI_CLASS_MR, domain, context, fid_operations<kCalls>()),
        registration_(registration),
        descriptor_(std::move(descriptor)),
        key_{registration ? registration->key.v : FI_KEY_NOTAVAIL} {
    mem_desc = descriptor_ != nullptr ? descriptor_->value() : this;
    key = key_.v;
  }

  // Deregisters as a barrier. Errors: -FI_EBUSY, and then it is still there, with its counters: the
  // access that is under way is going to count.
  int close() {
    const Status removed =
        registration_ ? parent().device()->regions().remove(*registration_) : Status();
    if (!removed) {
      log_warning(FI_LOG_MR, "cannot close region {:#x}: {}", key, removed.error().message);
      return fabric_status(removed.error());
    }
    parent().region_counters().release(key_, this);
    parent().give_region();
    delete this;
    return 0;
  }

  // fi_mr_bind(3). Errors: -FI_EOPBADSTATE after enable(), -FI_EBADFLAGS, -FI_EINVAL for an object
  // of another domain and for a kind of access that has its counter, -FI_ENOSYS for a counter in a
  // domain without FI_RMA_EVENT.
  int bind(::fid* object, std::uint64_t flags) {
    if (enabled_) return -FI_EOPBADSTATE;
    if (object->fclass == FI_CLASS_EP) return bind_endpoint(Handle::from(object), flags);
    if (object->fclass != FI_CLASS_CNTR) return -FI_EINVAL;
    if (!parent().registration().rma_events) return -FI_ENOSYS;
    if (flags == 0 || (flags & ~(FI_REMOTE_READ | FI_REMOTE_WRITE)) != 0) return -FI_EBADFLAGS;
    Cntr& counter = Cntr::from(object);
    if (&counter.domain() != &parent()) return -FI_EINVAL;
    // The endpoint that is told of an access may be any.
    const Status driven = parent().engines().widen(counter.counter().engines());
    if (!driven) return fabric_status(driven.error());
    if (!parent().region_counters().bind(key_, this, rights(flags), counter.counter()))
      return -FI_EINVAL;
    if (registration_) parent().device()->regions().report_accesses(*registration_, rights(flags));
    return 0;
  }

  void enable() { enabled_ = true; }

 private:
  // A region serves every endpoint of its domain (FI_MR_ENDPOINT is never required).
  int bind_endpoint(const Handle& endpoint, std::uint64_t flags) const {
    if (flags != 0) return -FI_EBADFLAGS;
    return &endpoint.domain() == &parent() ? 0 : -FI_EINVAL;
  }

  static int close_region(::fid* fid) {
    return at_c_border([&] { return from(fid).close(); });
  }
  static int control_region(::fid* fid, int command, void*) {
    if (command != FI_ENABLE) return -FI_ENOSYS;
    from(fid).enable();
    return 0;
  }

  static constexpr FidCalls kCalls{
      .close = close_region, .bind = bind_object<MemoryRegion>, .control = control_region};

  const std::optional<memory::Registration> registration_;  // none when it is not exposed
  const std::unique_ptr<LocalDescriptor> descriptor_;       // none without FI_MR_LOCAL
  const RegionKey key_;
  bool enabled_ = false;
};

// How a warning begins where a user chose a contract.
std::string contract_prefix(const Domain& domain) {
  const std::string& name = domain.terms().contract;
  return name.empty() ? "" : fmt::format("contract {}: ", name);
}

// The structure may be as short as the API version that the program was compiled for had it: auth
// keys came with 1.5, `iface` and `device` later, and they mean something with FI_HMEM only, which
// is not offered.
int check(const Domain& domain, const fi_mr_attr& attributes, std::uint64_t flags) {
  if ((flags & ~FI_RMA_EVENT) != 0) return -FI_EBADFLAGS;
  const std::size_t most = domain.terms().mr_iov_limit;
  if (attributes.mr_iov == nullptr || attributes.iov_count == 0 || attributes.iov_count > most) {
    log_warning(FI_LOG_MR, "{}a region of {} segments: 1 to {} are possible",
                contract_prefix(domain), attributes.iov_count, most);
    return -FI_EINVAL;
  }
  if ((attributes.access & ~(kKnownAccess | kIgnoredAccess)) != 0) return -FI_EINVAL;
  if (attributes.offset != 0) return -FI_EINVAL;
  if (is_exposed(attributes) && !domain.registration().allows_key(attributes.requested_key)) {
    log_warning(FI_LOG_MR, "requested_key {:#x}: the largest is {:#x}", attributes.requested_key,
                domain.registration().largest_key);
    return -FI_EKEYREJECTED;
  }
  if (domain.api_version() >= kFirstApiWithAuthKeys && attributes.auth_key_size != 0) {
    log_warning(FI_LOG_MR, "auth_key_size {}: authorization keys are not offered",
                attributes.auth_key_size);
    return -FI_EINVAL;
  }
  return 0;
}

// Pages of an address range that wraps are not looked for: the region table refuses it.
bool is_mapped(const iovec& segment) {
  const auto base = reinterpret_cast<std::uint64_t>(segment.iov_base);
  return base + segment.iov_len < base || os::is_mapped(segment.iov_base, segment.iov_len);
}

int refuse(const memory::RegionAttributes& wanted, const Error& error) {
  log_warning(FI_LOG_MR, "cannot register {} bytes at {:#x}: {}", wanted.length, wanted.base,
              error.message);
  return error.code == ENOKEY ? -FI_ENOKEY : fabric_status(error);
}

// Makes the region's segments usable by local operations, where that needs a descriptor.
Result<std::unique_ptr<LocalDescriptor>> describe_segments(Domain& domain,
                                                           const memory::RegionAttributes& wanted) {
  if (domain.local_descriptors() == nullptr) return std::unique_ptr<LocalDescriptor>();
  LocalRange all[kMrIovLimit] = {{reinterpret_cast<void*>(wanted.base), wanted.length}};
  std::ranges::copy(wanted.rest, all + 1);
  return domain.local_descriptors()->add({all, 1 + wanted.rest.size()}, wanted.access);
}

int add_region(Domain& domain, const fi_mr_attr& attributes, fid_mr** mr) {
  memory::RegionAttributes wanted;
  wanted.domain = domain.id();
  wanted.access = rights(attributes.access);
  const std::span<const iovec> segments(attributes.mr_iov, attributes.iov_count);
  for (const iovec& segment : segments) {
    if (!domain.registration().allocated || is_mapped(segment)) continue;
    log_warning(FI_LOG_MR, "cannot register {} bytes at {}: not all of them are mapped",
                segment.iov_len, fmt::ptr(segment.iov_base));
    return -FI_EFAULT;
  }
  wanted.base = reinterpret_cast<std::uint64_t>(segments[0].iov_base);
  wanted.length = segments[0].iov_len;
  LocalRange rest[kMrIovLimit];
  std::transform(segments.begin() + 1, segments.end(), rest, [](const iovec& segment) {
    return LocalRange{segment.iov_base, segment.iov_len};
  });
  wanted.rest = {rest, segments.size() - 1};
  wanted.start = domain.registration().virtual_addresses ? wanted.base : 0;
  wanted.choose_key = domain.registration().provider_keys;
  wanted.short_key = wanted.choose_key && domain.registration().short_keys;
  wanted.key = RegionKey{attributes.requested_key};
  if (const auto size = memory::RegionTable::size_of(wanted); !size) {
    return refuse(wanted, size.error());
  }
  auto descriptor = describe_segments(domain, wanted);
  if (!descriptor) return refuse(wanted, descriptor.error());
  std::optional<memory::Registration> registration;
  if (is_exposed(attributes)) {
    const auto added = domain.device()->regions().add(wanted);
    if (!added) return refuse(wanted, added.error());
    registration = added.value();
  }
  *mr = new MemoryRegion(domain, registration, std::move(descriptor).value(), attributes.context);
  return 0;
}

int register_region(Domain& domain, const fi_mr_attr& attributes, std::uint64_t flags,
                    fid_mr** mr) {
  if (const int wrong = check(domain, attributes, flags)) return wrong;
  if (!domain.take_region()) {
    log_warning(FI_LOG_MR, "{}the domain has {} regions already, the most that are possible",
                contract_prefix(domain), domain.terms().mr_cnt);
    return -FI_ENOSPC;
  }
  const int status = add_region(domain, attributes, mr);
  if (status != 0) domain.give_region();
  return status;
}

Domain* domain_of(fid* fid) {
  if (fid == nullptr || fid->fclass != FI_CLASS_DOMAIN) return nullptr;
  return &Domain::from(fid);
}

int regattr(fid* fid, const fi_mr_attr* attributes, std::uint64_t flags, fid_mr** mr) {
  Domain* domain = domain_of(fid);
  if (domain == nullptr || attributes == nullptr || mr == nullptr) return -FI_EINVAL;
  return at_c_border([&] { return register_region(*domain, *attributes, flags, mr); });
}

int regv(fid* fid, const iovec* sges, std::size_t count, std::uint64_t access, std::uint64_t offset,
         std::uint64_t key, std::uint64_t flags, fid_mr** mr, void* context) {
  fi_mr_attr attributes{};
  attributes.mr_iov = sges;
  attributes.iov_count = count;
  attributes.access = access;
  attributes.offset = offset;
  attributes.requested_key = key;
  attributes.context = context;
  return regattr(fid, &attributes, flags, mr);
}

int reg(fid* fid, const void* buffer, std::size_t length, std::uint64_t access,
        std::uint64_t offset, std::uint64_t key, std::uint64_t flags, fid_mr** mr, void* context) {
  const iovec sge{const_cast<void*>(buffer), length};
  return regv(fid, &sge, 1, access, offset, key, flags, mr, context);
}

}  // namespace

fi_ops_mr* mr_operations() {
  return operations_with<fi_ops_mr>([](fi_ops_mr& table) {
    table.reg = reg;
    table.regv = regv;
    table.regattr = regattr;
  });
}

}  // namespace weft::fabric
