// SPDX-License-Identifier: BSD-2-Clause
// Which memory of devices does a domain take, and what copies it?
#include "domain_memory.h"

#include <rdma/fi_errno.h>

#include <cerrno>

#include "c_enum.h"

namespace weft::fabric {
namespace {

using memory::DeviceMemory;
using memory::MemoryKind;
using memory::MemoryPlace;

static_assert(static_cast<int>(MemoryKind::kSystem) == FI_HMEM_SYSTEM);
static_assert(static_cast<int>(MemoryKind::kCuda) == FI_HMEM_CUDA);
static_assert(static_cast<int>(MemoryKind::kRocr) == FI_HMEM_ROCR);
static_assert(static_cast<int>(MemoryKind::kZe) == FI_HMEM_ZE);
static_assert(sizeof(iovec) == sizeof(LocalRange));

// The result of a program's function as an errno. Its errors are those of libfabric.
int errno_of(ssize_t copied, std::uint64_t length) {
  if (copied < 0) return copied > -FI_ERRNO_OFFSET ? static_cast<int>(-copied) : EIO;
  return static_cast<std::uint64_t>(copied) == length ? 0 : EIO;
}

std::uint64_t device_of(const fi_mr_attr& attributes, MemoryKind kind) {
  switch (kind) {
    case MemoryKind::kCuda:
      return static_cast<std::uint64_t>(attributes.device.cuda);
    case MemoryKind::kZe:
      return static_cast<std::uint64_t>(attributes.device.ze);
    case MemoryKind::kSystem:
    case MemoryKind::kRocr:
      break;
  }
  return attributes.device.reserved;
}

}  // namespace

int OverridingCopier::to_host(void* host, const MemoryPlace& place,
                              std::span<const LocalRange> buffers, std::uint64_t offset,
                              std::uint64_t length) {
  const auto iface = static_cast<fi_hmem_iface>(place.kind);
  return errno_of(functions_.copy_from_hmem_iov(host, length, iface, place.device,
                                                reinterpret_cast<const iovec*>(buffers.data()),
                                                buffers.size(), offset),
                  length);
}

int OverridingCopier::from_host(const MemoryPlace& place, std::span<const LocalRange> buffers,
                                std::uint64_t offset, const void* host, std::uint64_t length) {
  const auto iface = static_cast<fi_hmem_iface>(place.kind);
  return errno_of(functions_.copy_to_hmem_iov(iface, place.device,
                                              reinterpret_cast<const iovec*>(buffers.data()),
                                              buffers.size(), offset, host, length),
                  length);
}

DomainMemory::DomainMemory() {
  for (const MemoryKind kind : {MemoryKind::kCuda, MemoryKind::kRocr, MemoryKind::kZe}) {
    static_cast<void>(drivers_.use({kind, 0}));
  }
}

int DomainMemory::override(const fi_hmem_override_ops& functions) {
  if (functions.size != sizeof functions) return -FI_EINVAL;
  if (functions.copy_from_hmem_iov == nullptr || functions.copy_to_hmem_iov == nullptr) {
    return -FI_EINVAL;
  }
  if (is_used_.load()) return -FI_EBUSY;
  override_.set(functions);
  return 0;
}

Result<DeviceMemory> DomainMemory::memory_of(const fi_mr_attr& attributes, std::uint64_t flags) {
  auto found = find(attributes, flags);
  if (found) is_used_.store(true);
  return found;
}

Result<DeviceMemory> DomainMemory::find(const fi_mr_attr& attributes, std::uint64_t flags) {
  const int iface = number_of(attributes.iface);
  if (iface < 0 || iface >= static_cast<int>(memory::kMemoryKinds)) {
    return Error{ENOSYS, "an interface of memory that is not offered"};
  }
  const bool of_host = (flags & FI_HMEM_HOST_ALLOC) != 0;
  const bool of_device = (flags & FI_HMEM_DEVICE_ONLY) != 0;
  const auto kind = static_cast<MemoryKind>(iface);
  if ((of_host && of_device) || (of_device && kind == MemoryKind::kSystem)) {
    return Error{EINVAL, "FI_HMEM_DEVICE_ONLY of memory of the host"};
  }
  if (kind == MemoryKind::kSystem) return DeviceMemory{};
  // The device is ignored then.
  const MemoryPlace place{kind, of_host ? 0 : device_of(attributes, kind)};
  if (!override_.is_set()) {
    if (Status ok = drivers_.use(place); !ok) return ok.error();
  }
  if (of_host) return DeviceMemory{};
  if (override_.is_set()) return DeviceMemory{&override_, place};
  return DeviceMemory{&drivers_, place};
}

bool DomainMemory::is_of_device(const void* address) const {
  return !drivers_.find(address).is_host();
}

}  // namespace weft::fabric
