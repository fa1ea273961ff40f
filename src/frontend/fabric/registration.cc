// SPDX-License-Identifier: BSD-2-Clause
// How does memory of a program become a region of its domain? fi_mr(3)
#include "registration.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "log.h"
#include "os/process_memory.h"

namespace weft::fabric {
namespace {

Error refusal(const memory::RegionAttributes& wanted, const Error& error) {
  log_warning(FI_LOG_MR, "cannot register {} bytes at {:#x}: {}", wanted.length, wanted.base,
              error.message);
  return error;
}

// Pages of an address range that wraps are not looked for: the region table refuses it.
bool is_mapped(const iovec& segment) {
  const auto base = reinterpret_cast<std::uint64_t>(segment.iov_base);
  return base + segment.iov_len < base || os::is_mapped(segment.iov_base, segment.iov_len);
}

// With FI_MR_ALLOCATED every page is mapped.
Status check_pages(const Domain& domain, std::span<const iovec> segments) {
  if (!domain.registration().allocated) return {};
  for (const iovec& segment : segments) {
    if (is_mapped(segment)) continue;
    log_warning(FI_LOG_MR, "cannot register {} bytes at {}: not all of them are mapped",
                segment.iov_len, fmt::ptr(segment.iov_base));
    return Error{EFAULT, "not all pages are mapped"};
  }
  return {};
}

// Further segments become `rest`.
memory::RegionAttributes wanted_region(const Domain& domain, const RegionWish& wish,
                                       LocalRange (&rest)[kMrIovLimit]) {
  const RegistrationMode& mode = domain.registration();
  std::transform(wish.segments.begin() + 1, wish.segments.end(), rest, [](const iovec& segment) {
    return LocalRange{segment.iov_base, segment.iov_len};
  });
  memory::RegionAttributes wanted;
  wanted.domain = domain.id();
  wanted.access = rights(wish.access);
  wanted.base = reinterpret_cast<std::uint64_t>(wish.segments[0].iov_base);
  wanted.length = wish.segments[0].iov_len;
  wanted.rest = {rest, wish.segments.size() - 1};
  wanted.start = mode.virtual_addresses ? wanted.base : 0;
  wanted.key = RegionKey{wish.requested_key};
  wanted.disabled = mode.refreshed || wish.starts_disabled(mode);
  return wanted;
}

// Adds the region to the table under a random raw key.
Result<PeersKey> expose_by_raw_key(Domain& domain, memory::RegionAttributes& wanted) {
  const RawKeys& keys = domain.raw_keys();
  for (;;) {
    auto raw = std::make_unique<RawKey>(keys.random());
    wanted.key = keys.key_of(raw->view());
    if (wanted.key.v == FI_KEY_NOTAVAIL) continue;
    const auto added = domain.device()->regions().add(wanted);
    if (added) return PeersKey{added.value(), std::move(raw)};
    if (added.error().code != ENOKEY) return added.error();
  }
}

Result<PeersKey> expose(Domain& domain, memory::RegionAttributes& wanted) {
  if (domain.raw_keys().required()) return expose_by_raw_key(domain, wanted);
  wanted.choose_key = domain.registration().provider_keys;
  wanted.short_key = wanted.choose_key && domain.registration().short_keys;
  const auto added = domain.device()->regions().add(wanted);
  if (!added) return added.error();
  return PeersKey{added.value(), nullptr};
}

// Makes the region's segments usable by local operations, where that needs a descriptor.
Result<std::unique_ptr<LocalDescriptor>> describe_segments(Domain& domain,
                                                           const memory::RegionAttributes& wanted) {
  if (domain.local_descriptors() == nullptr) return std::unique_ptr<LocalDescriptor>();
  LocalRange all[kMrIovLimit] = {{reinterpret_cast<void*>(wanted.base), wanted.length}};
  std::ranges::copy(wanted.rest, all + 1);
  return domain.local_descriptors()->add({all, 1 + wanted.rest.size()}, wanted.access);
}

}  // namespace

Access rights(std::uint64_t access) {
  constexpr std::pair<std::uint64_t, Access> kRights[] = {{FI_SEND, Access::kSend},
                                                          {FI_RECV, Access::kReceive},
                                                          {FI_READ, Access::kRead},
                                                          {FI_WRITE, Access::kWrite},
                                                          {FI_REMOTE_READ, Access::kRemoteRead},
                                                          {FI_REMOTE_WRITE, Access::kRemoteWrite}};
  Access result = Access::kNone;
  for (const auto& [flag, right] : kRights) {
    if ((access & flag) != 0) result = result | right;
  }
  return result;
}

Status check_ranges(const Domain& domain, const RegionWish& wish) {
  LocalRange rest[kMrIovLimit];
  const memory::RegionAttributes wanted = wanted_region(domain, wish, rest);
  const auto size = memory::RegionTable::size_of(wanted);
  return size ? Status() : refusal(wanted, size.error());
}

Result<Registered> register_memory(Domain& domain, const RegionWish& wish) {
  if (const Status mapped = check_pages(domain, wish.segments); !mapped) return mapped.error();
  LocalRange rest[kMrIovLimit];
  memory::RegionAttributes wanted = wanted_region(domain, wish, rest);
  Registered made;
  made.base_address = wanted.start;
  auto descriptor = describe_segments(domain, wanted);
  if (!descriptor) return refusal(wanted, descriptor.error());
  made.descriptor = std::move(descriptor).value();
  if (!wish.is_exposed()) return made;
  auto key = expose(domain, wanted);
  if (!key) return refusal(wanted, key.error());
  made.peers_key = std::move(key).value();
  return made;
}

std::string contract_prefix(const Domain& domain) {
  const std::string& name = domain.terms().contract;
  return name.empty() ? "" : fmt::format("contract {}: ", name);
}

}  // namespace weft::fabric
