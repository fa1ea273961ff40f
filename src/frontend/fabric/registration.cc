// SPDX-License-Identifier: BSD-2-Clause
// How does memory of a program become a region of its domain? fi_mr(3)
#include "registration.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "log.h"

namespace weft::fabric {
namespace {

Error refusal(const memory::RegionAttributes& wanted, const Error& error) {
  log_warning(FI_LOG_MR, "cannot register {} bytes at {:#x}: {}", wanted.length, wanted.base,
              error.message);
  return error;
}

constexpr std::uint64_t kReadingAccess = FI_SEND | FI_WRITE | FI_REMOTE_READ;
constexpr std::uint64_t kWritingAccess = FI_RECV | FI_READ | FI_REMOTE_WRITE;

// The address behind the last byte, or the last address.
std::uint64_t end_of(const LocalRange& range) {
  const auto base = reinterpret_cast<std::uint64_t>(range.base);
  return range.length > ~base ? ~std::uint64_t{0} : base + range.length;
}

// The first address of the range that is not mapped, or its end.
std::uint64_t first_unmapped(const LocalRange& range, std::span<const os::AddressRange> mapped) {
  auto at = reinterpret_cast<std::uint64_t>(range.base);
  for (const os::AddressRange& each : mapped) {
    if (each.begin <= at && at < each.end) at = each.end;
  }
  return std::min(at, end_of(range));
}

// With FI_MR_ALLOCATED every page is mapped with what the rights need.
Status check_pages(const Domain& domain, std::span<const LocalRange> segments,
                   std::uint64_t access) {
  if (!domain.registration().allocated) return {};
  const auto mapped = mapped_memory(segments, access);
  if (!mapped) return mapped.error();
  for (const LocalRange& segment : segments) {
    const std::uint64_t bad = first_unmapped(segment, mapped.value());
    if (segment.length == 0 || bad == end_of(segment)) continue;
    log_warning(FI_LOG_MR,
                "{}cannot register {} bytes at {}: the page of {:#x} is not mapped, or not with "
                "what the access flags need",
                contract_prefix(domain), segment.length, fmt::ptr(segment.base), bad);
    return Error{EFAULT, "a page is not mapped with what the access flags need"};
  }
  return {};
}

memory::RegionAttributes wanted_region(const Domain& domain, const RegionWish& wish) {
  const RegistrationMode& mode = domain.registration();
  memory::RegionAttributes wanted;
  wanted.domain = domain.id();
  wanted.access = rights(wish.access);
  wanted.base = reinterpret_cast<std::uint64_t>(wish.segments[0].base);
  wanted.length = wish.segments[0].length;
  wanted.rest = wish.segments.subspan(1);
  wanted.start = mode.virtual_addresses ? wanted.base : 0;
  wanted.key = RegionKey{wish.requested_key};
  wanted.authorization = number_of(wish.authorization);
  wanted.device = wish.device;
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
    if (added) return PeersKey(domain.device()->regions(), added.value(), std::move(raw));
    if (added.error().code != ENOKEY) return added.error();
  }
}

Result<PeersKey> expose(Domain& domain, memory::RegionAttributes& wanted) {
  if (domain.raw_keys().required()) return expose_by_raw_key(domain, wanted);
  wanted.choose_key = domain.registration().provider_keys;
  wanted.short_key = wanted.choose_key && domain.registration().short_keys;
  const auto added = domain.device()->regions().add(wanted);
  if (!added) return added.error();
  return PeersKey(domain.device()->regions(), added.value(), nullptr);
}

// Makes the region's segments usable by local operations, where that needs a descriptor.
Result<std::unique_ptr<LocalDescriptor>> describe_segments(Domain& domain, const RegionWish& wish) {
  if (domain.local_descriptors() == nullptr) return std::unique_ptr<LocalDescriptor>();
  // Without FI_MR_LOCAL a program need not say what it does with its own memory.
  const bool says = (domain.terms().mr_modes & FI_MR_LOCAL) != 0;
  const Access local = says ? rights(wish.access) : rights(wish.access) | kLocalRead | kLocalWrite;
  return domain.local_descriptors()->add(wish.segments, local, wish.device);
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
  const memory::RegionAttributes wanted = wanted_region(domain, wish);
  const auto size = memory::RegionTable::size_of(wanted);
  return size ? Status() : refusal(wanted, size.error());
}

Result<Registered> register_memory(Domain& domain, const RegionWish& wish) {
  const bool by_processor = wish.device.copier == nullptr;
  const Status mapped = by_processor ? check_pages(domain, wish.segments, wish.access) : Status();
  if (!mapped) return mapped.error();
  memory::RegionAttributes wanted = wanted_region(domain, wish);
  Registered made;
  made.base_address = wanted.start;
  made.authorization = wish.authorization;
  auto descriptor = describe_segments(domain, wish);
  if (!descriptor) return refusal(wanted, descriptor.error());
  made.descriptor = std::move(descriptor).value();
  if (!wish.is_exposed()) return made;
  auto key = expose(domain, wanted);
  if (!key) return refusal(wanted, key.error());
  made.peers_key = std::move(key).value();
  return made;
}

Result<std::vector<os::AddressRange>> mapped_memory(std::span<const LocalRange> ranges,
                                                    std::uint64_t access) {
  os::AddressRange within{~std::uint64_t{0}, 0};
  for (const LocalRange& range : ranges) {
    within.begin = std::min(within.begin, reinterpret_cast<std::uint64_t>(range.base));
    within.end = std::max(within.end, end_of(range));
  }
  return os::mapped_ranges(within, (access & kReadingAccess) != 0, (access & kWritingAccess) != 0);
}

std::string contract_prefix(const Domain& domain) {
  const std::string& name = domain.terms().contract;
  return name.empty() ? "" : fmt::format("contract {}: ", name);
}

}  // namespace weft::fabric
