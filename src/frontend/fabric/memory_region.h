// SPDX-License-Identifier: BSD-2-Clause
// What is a memory region to a libfabric program? fi_mr(3)
#pragma once

#include <rdma/fi_domain.h>

#include <mutex>
#include <span>

#include "domain.h"
#include "ep.h"
#include "fid_object.h"
#include "handle.h"
#include "memory/region_table.h"
#include "registration.h"

namespace weft::fabric {

// The object behind a fid_mr. Where the domain requires FI_MR_ENDPOINT, or FI_MR_RMA_EVENT of a
// region with the flag FI_RMA_EVENT, it is disabled until enable(); elsewhere that only ends the
// time for bindings. Any thread.
class MemoryRegion : public ChildObject<MemoryRegion, fid_mr, Domain> {
 public:
  // For what open() is going to register.
  MemoryRegion(Domain& domain, const RegionWish& wish, void* context);

  // Registers, once. Returns 0 or what fi_mr_regattr(3) answers; then it may only be closed.
  int open(const RegionWish& wish);

  // Deregisters as a barrier; the event of a registration that was not read is not going to be.
  // Errors: -FI_EBUSY, and then it is still there, with its counters: the access that is under way
  // is going to count.
  int close();

  // fi_mr_bind(3). Errors: -FI_EOPBADSTATE before it is registered and after enable(),
  // -FI_EBADFLAGS, -FI_EINVAL for an object of another domain and for a kind of access that has its
  // counter, -FI_ENOSYS for a counter in a domain without FI_RMA_EVENT; -FI_EINVAL, too, where
  // FI_MR_ENDPOINT is required, for a second endpoint and for one that is not enabled, and, where
  // FI_MR_RMA_EVENT is, for a counter of a region without the flag FI_RMA_EVENT.
  int bind(::fid* object, std::uint64_t flags);

  // fi_mr_enable(3). Errors: -FI_EOPBADSTATE before it is registered, -FI_EINVAL without the
  // endpoint that FI_MR_ENDPOINT requires.
  int enable();

  // fi_mr_refresh(3). Without a list: all of it. Errors: -FI_EBADFLAGS, -FI_EINVAL for bytes that
  // are not in the region, -FI_EOPBADSTATE before it is registered, -FI_EBUSY as close(), after
  // which the region is as before.
  int refresh(const fi_mr_modify& wanted);

  // fi_mr_raw_attr(3). Errors: -FI_EBADFLAGS, -FI_EINVAL for a null pointer, -FI_EOPBADSTATE before
  // it is registered or, with FI_MR_ENDPOINT, enabled, -FI_ENOKEY where no peer may access it,
  // -FI_ETOOSMALL, after which only the size has been written.
  int raw_attributes(const struct fi_mr_raw_attr& wanted) const;

 private:
  memory::RegionTable& table() const { return parent().device()->regions(); }
  const std::optional<PeersKey>& peers_key() const { return registered_.peers_key; }
  RegionKey table_key() const;
  // Opens the memory that is mapped, where FI_MR_MMU_NOTIFY is required, and, unless it starts
  // disabled, the region. Errors as refresh().
  int open_mapped_memory();
  int bind_endpoint(const Handle& endpoint, std::uint64_t flags);
  int bind_counter(::fid* object, std::uint64_t flags);
  int refresh_ranges(std::span<const LocalRange> ranges);
  void show_key();

  const std::uint64_t access_;
  const bool starts_disabled_;
  const bool counts_;           // it has the flag FI_RMA_EVENT
  bool of_device_ = false;      // no page of it is the processor's
  mutable std::mutex control_;  // of all that follows, and of refreshes
  bool open_ = false;
  Places::Reservation place_;
  Registered registered_;
  UseOf<Ep> endpoint_;  // that it is bound to, where that is required
  bool enabled_ = false;
};

}  // namespace weft::fabric
