// SPDX-License-Identifier: BSD-2-Clause
// How does memory of a program become a region of its domain? fi_mr(3)
#pragma once

#include <rdma/fi_domain.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/types.h"
#include "domain.h"
#include "local_descriptors.h"
#include "memory/region_table.h"
#include "os/mapped_ranges.h"
#include "raw_keys.h"

namespace weft::fabric {

// The rights of a region, or of an access, by libfabric's flags.
Access rights(std::uint64_t access);

// The arguments of a program that registers memory.
struct RegionWish {
  std::span<const LocalRange> segments;  // 1 to kMrIovLimit
  std::uint64_t access = 0;
  std::uint64_t requested_key = 0;
  std::uint64_t flags = 0;
  AuthorizationPtr authorization{};  // the key that peers must have, or null
  memory::DeviceMemory device{};     // how it is reached if it is memory of a device

  // A region that no peer may access needs no key, and no place in the table.
  bool is_exposed() const { return (access & (FI_REMOTE_READ | FI_REMOTE_WRITE)) != 0; }
  // Such a region is disabled until the program enables it.
  bool starts_disabled(const RegistrationMode& mode) const {
    return mode.endpoints || (mode.flagged_events && (flags & FI_RMA_EVENT) != 0);
  }
};

// A region as peers know it, registered as long as the object lives.
class PeersKey {
 public:
  // `raw` is null where the raw key follows from the registration's key.
  PeersKey(memory::RegionTable& table, const memory::Registration& registration,
           std::unique_ptr<const RawKey> raw)
      : table_(&table), registration_(registration), raw_(std::move(raw)) {}
  PeersKey(PeersKey&& other) noexcept { swap(other); }
  PeersKey& operator=(PeersKey&& other) noexcept {
    swap(other);
    return *this;
  }
  ~PeersKey() {
    if (table_ != nullptr) static_cast<void>(remove());
  }

  // Deregisters as a barrier. Errors: those of RegionTable::remove(); it can be called again then.
  Status remove() {
    Status removed = table_->remove(registration_);
    if (removed) table_ = nullptr;
    return removed;
  }
  const memory::Registration& registration() const { return registration_; }
  const RawKey* raw() const { return raw_.get(); }

 private:
  void swap(PeersKey& other) {
    std::swap(table_, other.table_);
    std::swap(registration_, other.registration_);
    std::swap(raw_, other.raw_);
  }

  memory::RegionTable* table_ = nullptr;
  memory::Registration registration_{};
  std::unique_ptr<const RawKey> raw_;
};

// A region of the domain, as long as its key and its descriptor live.
struct Registered {
  AuthorizationPtr authorization;               // of which the table has the number
  std::uint64_t base_address = 0;               // the remote address of its first byte
  std::optional<PeersKey> peers_key;            // none where no peer may access it
  std::unique_ptr<LocalDescriptor> descriptor;  // null without FI_MR_LOCAL
};

// Error, which is logged: EINVAL where a segment, or the remote addresses, wrap around 2^64.
Status check_ranges(const Domain& domain, const RegionWish& wish);

// Registers memory that check_ranges() has passed. With FI_MR_MMU_NOTIFY the region is disabled.
// Errors, which are logged: EFAULT where FI_MR_ALLOCATED wants mapped pages, those of
// RegionTable::add().
Result<Registered> register_memory(Domain& domain, const RegionWish& wish);

// The memory of these ranges that is mapped with what the access flags need, in the order of its
// addresses. Errors: those of os::mapped_ranges().
Result<std::vector<os::AddressRange>> mapped_memory(std::span<const LocalRange> ranges,
                                                    std::uint64_t access);

// How a warning begins where a user chose a contract.
std::string contract_prefix(const Domain& domain);

}  // namespace weft::fabric
