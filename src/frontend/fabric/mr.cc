// SPDX-License-Identifier: BSD-2-Clause
// How is memory registered? fi_mr(3)
#include <fmt/format.h>

#include <memory>
#include <span>
#include <vector>

#include "authorization.h"
#include "boundary.h"
#include "domain.h"
#include "log.h"
#include "memory_region.h"
#include "operations.h"

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

// The structure may be as short as the API version that the program was compiled for had it: auth
// keys came with 1.5, `iface` and `device` later, and they mean something with FI_HMEM only.
int check(const Domain& domain, const fi_mr_attr& attributes, const RegionWish& wish) {
  const std::uint64_t of_devices =
      domain.registration().devices ? FI_HMEM_DEVICE_ONLY | FI_HMEM_HOST_ALLOC : 0;
  if ((wish.flags & ~(FI_RMA_EVENT | of_devices)) != 0) return -FI_EBADFLAGS;
  const std::size_t most = domain.terms().mr_iov_limit;
  if (attributes.mr_iov == nullptr || attributes.iov_count == 0 || attributes.iov_count > most) {
    log_warning(FI_LOG_MR, "{}a region of {} segments: 1 to {} are possible",
                contract_prefix(domain), attributes.iov_count, most);
    return -FI_EINVAL;
  }
  if ((attributes.access & ~(kKnownAccess | kIgnoredAccess)) != 0) return -FI_EINVAL;
  if (attributes.offset != 0) return -FI_EINVAL;
  if (wish.is_exposed() && !domain.registration().allows_key(attributes.requested_key)) {
    log_warning(FI_LOG_MR, "requested_key {:#x}: the largest is {:#x}", attributes.requested_key,
                domain.registration().largest_key);
    return -FI_EKEYREJECTED;
  }
  return check_ranges(domain, wish) ? 0 : -FI_EINVAL;
}

// Registers when the event queue is read that is told of it. `region` is written before.
void register_later(EventQueue& eq, MemoryRegion& region, const RegionWish& wish) {
  auto segments =
      std::make_shared<std::vector<LocalRange>>(wish.segments.begin(), wish.segments.end());
  eq.push_work(FI_MR_COMPLETE, region.fid, [&region, wish, segments] {
    RegionWish own = wish;
    own.segments = *segments;
    return at_c_border([&] { return region.open(own); });
  });
}

int register_region(Domain& domain, const fi_mr_attr& attributes, std::uint64_t flags,
                    fid_mr** mr) {
  RegionWish wish{{reinterpret_cast<const LocalRange*>(attributes.mr_iov), attributes.iov_count},
                  attributes.access,
                  attributes.requested_key,
                  flags};
  if (const int wrong = check(domain, attributes, wish)) return wrong;
  auto key =
      authorization_in(attributes, domain.api_version(), *domain.device(), domain.authorization());
  if (!key) {
    log_warning(FI_LOG_MR, "cannot register: {}", key.error().message);
    return fabric_status(key.error());
  }
  wish.authorization = std::move(key).value();
  if (DomainMemory* const memory = domain.memory()) {
    auto device = memory->memory_of(attributes, flags);
    if (!device) {
      log_warning(FI_LOG_MR, "cannot register: {}", device.error().message);
      return fabric_status(device.error());
    }
    wish.device = device.value();
  }
  auto region = std::make_unique<MemoryRegion>(domain, wish, attributes.context);
  EventQueue* const eq = domain.registration_eq();
  if (eq == nullptr) {
    if (const int failed = region->open(wish)) return failed;
  }
  *mr = region.get();
  if (eq != nullptr) register_later(*eq, *region, wish);
  static_cast<void>(region.release());
  return 0;
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
