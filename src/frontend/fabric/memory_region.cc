// SPDX-License-Identifier: BSD-2-Clause
// What is a memory region to a libfabric program? fi_mr(3)
#include "memory_region.h"

#include <algorithm>
#include <atomic>
#include <functional>
#include <utility>
#include <vector>

#include "boundary.h"
#include "counter.h"
#include "log.h"

namespace weft::fabric {
namespace {

int close_region(::fid* fid) {
  return at_c_border([&] { return MemoryRegion::from(fid).close(); });
}

int control_region(::fid* fid, int command, void* argument) {
  MemoryRegion& region = MemoryRegion::from(fid);
  if (command == FI_ENABLE) return at_c_border([&] { return region.enable(); });
  if (command != FI_GET_RAW_MR && command != FI_REFRESH) return -FI_ENOSYS;
  if (argument == nullptr) return -FI_EINVAL;
  return at_c_border([&] {
    return command == FI_REFRESH
               ? region.refresh(*static_cast<fi_mr_modify*>(argument))
               : region.raw_attributes(*static_cast<struct fi_mr_raw_attr*>(argument));
  });
}

constexpr FidCalls kRegionCalls{
    .close = close_region, .bind = bind_object<MemoryRegion>, .control = control_region};

// The answer of fi_mr_regattr(3).
int status_of(const Error& error) {
  return error.code == ENOKEY ? -FI_ENOKEY : fabric_status(error);
}

}  // namespace

MemoryRegion::MemoryRegion(Domain& domain, const RegionWish& wish, void* context)
    : ChildObject(FI_CLASS_MR, domain, context, fid_operations<kRegionCalls>()),
      access_(wish.access),
      starts_disabled_(wish.starts_disabled(domain.registration())),
      counts_((wish.flags & FI_RMA_EVENT) != 0) {
  mem_desc = nullptr;
  key = FI_KEY_NOTAVAIL;
}

int MemoryRegion::open(const RegionWish& wish) {
  Places::Reservation place = parent().places().regions.take();
  if (!place) return -FI_ENOSPC;
  auto made = register_memory(parent(), wish);
  if (!made) return status_of(made.error());
  const std::lock_guard guard(control_);
  registered_ = std::move(made).value();
  of_device_ = wish.device.copier != nullptr;
  if (const int failed = open_mapped_memory()) return failed;
  place_ = std::move(place);
  open_ = true;
  // Read by the program at any time, also while another thread registers.
  void* const descriptor =
      registered_.descriptor != nullptr ? registered_.descriptor->value() : this;
  std::atomic_ref(mem_desc).store(descriptor, std::memory_order_release);
  if (!parent().registration().endpoints) show_key();
  return 0;
}

RegionKey MemoryRegion::table_key() const {
  return peers_key() ? peers_key()->registration().key : RegionKey{FI_KEY_NOTAVAIL};
}

// A raw key is told by raw_attributes() only.
void MemoryRegion::show_key() {
  if (parent().raw_keys().required()) return;
  std::atomic_ref(key).store(table_key().v, std::memory_order_release);
}

int MemoryRegion::close() {
  if (EventQueue* const eq = parent().registration_eq()) eq->forget(fid);
  const Status removed = peers_key() ? registered_.peers_key->remove() : Status();
  if (!removed) {
    log_warning(FI_LOG_MR, "cannot close region {:#x}: {}", table_key().v, removed.error().message);
    return fabric_status(removed.error());
  }
  parent().region_counters().release(table_key(), this);
  delete this;
  return 0;
}

int MemoryRegion::bind(::fid* object, std::uint64_t flags) {
  const std::lock_guard guard(control_);
  if (!open_ || enabled_) return -FI_EOPBADSTATE;
  if (object->fclass == FI_CLASS_EP) return bind_endpoint(Handle::from(object), flags);
  return object->fclass == FI_CLASS_CNTR ? bind_counter(object, flags) : -FI_EINVAL;
}

// Elsewhere a region serves every endpoint of its domain.
int MemoryRegion::bind_endpoint(const Handle& endpoint, std::uint64_t flags) {
  if (flags != 0) return -FI_EBADFLAGS;
  if (&endpoint.domain() != &parent()) return -FI_EINVAL;
  if (!parent().registration().endpoints) return 0;
  if (endpoint_ || endpoint.core() == nullptr) return -FI_EINVAL;
  endpoint_ = UseOf<Ep>(*endpoint.endpoint());
  return 0;
}

int MemoryRegion::bind_counter(::fid* object, std::uint64_t flags) {
  const RegistrationMode& mode = parent().registration();
  if (!mode.rma_events) return -FI_ENOSYS;
  if (flags == 0 || (flags & ~(FI_REMOTE_READ | FI_REMOTE_WRITE)) != 0) return -FI_EBADFLAGS;
  if (mode.flagged_events && !counts_) return -FI_EINVAL;
  Cntr& counter = Cntr::from(object);
  if (&counter.domain() != &parent()) return -FI_EINVAL;
  // The endpoint that is told of an access may be any.
  const Status driven = parent().engines().widen(counter.counter().engines());
  if (!driven) return fabric_status(driven.error());
  if (!parent().region_counters().bind(table_key(), this, rights(flags), counter.counter()))
    return -FI_EINVAL;
  if (peers_key()) table().report_accesses(peers_key()->registration(), rights(flags));
  return 0;
}

int MemoryRegion::enable() {
  const std::lock_guard guard(control_);
  if (!open_) return -FI_EOPBADSTATE;
  if (parent().registration().endpoints && !endpoint_) return -FI_EINVAL;
  if (std::exchange(enabled_, true) || !starts_disabled_) return 0;
  const std::uint32_t only = endpoint_ ? endpoint_.get()->number() : 0;
  if (peers_key()) table().enable(peers_key()->registration(), only);
  show_key();
  return 0;
}

int MemoryRegion::refresh(const fi_mr_modify& wanted) {
  if (wanted.flags != 0) return -FI_EBADFLAGS;
  const std::size_t count = wanted.attr.iov_count;
  if (wanted.attr.mr_iov == nullptr && count != 0) return -FI_EINVAL;
  const std::span ranges(reinterpret_cast<const LocalRange*>(wanted.attr.mr_iov), count);
  const std::lock_guard guard(control_);
  if (!open_) return -FI_EOPBADSTATE;
  return peers_key() ? refresh_ranges(ranges) : 0;
}

int MemoryRegion::open_mapped_memory() {
  if (!peers_key() || !parent().registration().refreshed) return 0;
  if (const int wrong = refresh_ranges({})) return wrong;
  if (!starts_disabled_) table().enable(peers_key()->registration());
  return 0;
}

// Without ranges: all of the region.
int MemoryRegion::refresh_ranges(std::span<const LocalRange> ranges) {
  const memory::RegionParts before = table().parts_of(peers_key()->registration());
  const auto outside = [&](const LocalRange& range) { return !contain(before, range); };
  if (std::ranges::any_of(ranges, outside)) return -FI_EINVAL;
  std::function<void(memory::RegionParts&)> reread;
  if (parent().registration().refreshed && !of_device_) {
    reread = [&](memory::RegionParts& parts) {
      std::vector<LocalRange> all;
      for (const memory::RegionPart& part : parts)
        all.push_back({reinterpret_cast<void*>(part.base), part.length});
      const std::span<const LocalRange> looked = ranges.empty() ? all : ranges;
      const auto mapped = mapped_memory(looked, access_ & (FI_REMOTE_READ | FI_REMOTE_WRITE));
      parts = looked_at(parts, looked, mapped ? mapped.value() : std::vector<os::AddressRange>());
    };
  }
  const Status refreshed = table().refresh(peers_key()->registration(), reread);
  if (refreshed) return 0;
  log_warning(FI_LOG_MR, "cannot refresh region {:#x}: {}", table_key().v,
              refreshed.error().message);
  return fabric_status(refreshed.error());
}

int MemoryRegion::raw_attributes(const struct fi_mr_raw_attr& wanted) const {
  if (wanted.flags != 0) return -FI_EBADFLAGS;
  if (wanted.base_addr == nullptr || wanted.key_size == nullptr) return -FI_EINVAL;
  const std::lock_guard guard(control_);
  if (!open_) return -FI_EOPBADSTATE;
  if (!peers_key()) return -FI_ENOKEY;
  if (parent().registration().endpoints && !enabled_) return -FI_EOPBADSTATE;
  const RawKey* const chosen = peers_key()->raw();
  const RawKey own = chosen != nullptr ? *chosen : parent().raw_keys().of(table_key());
  const auto raw = own.view();
  const std::size_t room = std::exchange(*wanted.key_size, raw.size());
  if (room < raw.size()) return -FI_ETOOSMALL;
  if (wanted.raw_key == nullptr) return -FI_EINVAL;
  std::ranges::copy(raw, wanted.raw_key);
  *wanted.base_addr = registered_.base_address;
  return 0;
}

}  // namespace weft::fabric
