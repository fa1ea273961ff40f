// SPDX-License-Identifier: BSD-2-Clause
// How is memory registered? fi_mr(3)
#include "boundary.h"
#include "domain.h"
#include "log.h"
#include "unsupported.h"

namespace weft::fabric {
namespace {

constexpr std::uint64_t kKnownAccess =
    FI_SEND | FI_RECV | FI_READ | FI_WRITE | FI_REMOTE_READ | FI_REMOTE_WRITE | FI_COLLECTIVE;

// The object behind a fid_mr.
class MemoryRegion : public fid_mr {
 public:
  MemoryRegion(Domain& domain, memory::Registration registration, void* context)
      : fid_mr{}, domain_(domain), use_(domain), registration_(registration) {
    fid.fclass = FI_CLASS_MR;
    fid.context = context;
    fid.ops = fid_operations();
    mem_desc = this;
    key = registration.key.v;
  }

  // Deregisters as a barrier. Errors: -FI_EBUSY, and then it is still there.
  int close() {
    const Status removed = domain_.device()->regions().remove(registration_);
    if (!removed) {
      log_warning(FI_LOG_MR, "cannot close region {:#x}: {}", key, removed.error().message);
      return fabric_status(removed.error());
    }
    delete this;
    return 0;
  }

 private:
  static int close_region(::fid* fid) {
    return at_c_border(
        [&] { return static_cast<MemoryRegion*>(reinterpret_cast<fid_mr*>(fid))->close(); });
  }

  static fi_ops* fid_operations() {
    static fi_ops table = [] {
      fi_ops operations = unsupported_operations<fi_ops>();
      operations.close = close_region;
      return operations;
    }();
    return &table;
  }

  Domain& domain_;
  const Use use_;
  const memory::Registration registration_;
};

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

int check(const fi_mr_attr& attributes, std::uint64_t flags) {
  if (flags != 0) return -FI_EBADFLAGS;
  if (attributes.mr_iov == nullptr || attributes.iov_count != 1) return -FI_EINVAL;
  if ((attributes.access & ~kKnownAccess) != 0 || attributes.offset != 0) return -FI_EINVAL;
  if (attributes.mr_iov[0].iov_len == 0) return -FI_EINVAL;
  if (attributes.iface != FI_HMEM_SYSTEM) return -FI_ENOSYS;
  return 0;
}

int register_region(Domain& domain, const fi_mr_attr& attributes, std::uint64_t flags,
                    fid_mr** mr) {
  if (const int wrong = check(attributes, flags)) return wrong;
  memory::RegionAttributes wanted;
  wanted.domain = domain.id();
  wanted.access = rights(attributes.access);
  wanted.base = reinterpret_cast<std::uint64_t>(attributes.mr_iov[0].iov_base);
  wanted.length = attributes.mr_iov[0].iov_len;
  wanted.start = domain.virtual_addresses() ? wanted.base : 0;
  wanted.choose_key = domain.provider_keys();
  wanted.key = RegionKey{attributes.requested_key};
  const auto registration = domain.device()->regions().add(wanted);
  if (!registration) {
    log_warning(FI_LOG_MR, "cannot register {} bytes at {:#x}: {}", wanted.length, wanted.base,
                registration.error().message);
    return registration.error().code == ENOKEY ? -FI_ENOKEY : fabric_status(registration.error());
  }
  *mr = new MemoryRegion(domain, registration.value(), attributes.context);
  return 0;
}

Domain* domain_of(fid* fid) {
  if (fid == nullptr || fid->fclass != FI_CLASS_DOMAIN) return nullptr;
  return static_cast<Domain*>(reinterpret_cast<fid_domain*>(fid));
}

int regattr(fid* fid, const fi_mr_attr* attributes, std::uint64_t flags, fid_mr** mr) {
  Domain* domain = domain_of(fid);
  if (domain == nullptr || attributes == nullptr || mr == nullptr) return -FI_EINVAL;
  return at_c_border([&] { return register_region(*domain, *attributes, flags, mr); });
}

int regv(fid* fid, const iovec* pieces, std::size_t count, std::uint64_t access,
         std::uint64_t offset, std::uint64_t key, std::uint64_t flags, fid_mr** mr, void* context) {
  fi_mr_attr attributes{};
  attributes.mr_iov = pieces;
  attributes.iov_count = count;
  attributes.access = access;
  attributes.offset = offset;
  attributes.requested_key = key;
  attributes.context = context;
  attributes.iface = FI_HMEM_SYSTEM;
  return regattr(fid, &attributes, flags, mr);
}

int reg(fid* fid, const void* buffer, std::size_t length, std::uint64_t access,
        std::uint64_t offset, std::uint64_t key, std::uint64_t flags, fid_mr** mr, void* context) {
  const iovec piece{const_cast<void*>(buffer), length};
  return regv(fid, &piece, 1, access, offset, key, flags, mr, context);
}

}  // namespace

fi_ops_mr* mr_operations() {
  static fi_ops_mr table = [] {
    fi_ops_mr operations = unsupported_operations<fi_ops_mr>();
    operations.reg = reg;
    operations.regv = regv;
    operations.regattr = regattr;
    return operations;
  }();
  return &table;
}

}  // namespace weft::fabric
