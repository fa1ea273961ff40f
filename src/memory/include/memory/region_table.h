// SPDX-License-Identifier: BSD-2-Clause
// Which memory did this process register, and when has its last user finished?
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/types.h"
#include "memory/access_guard.h"
#include "memory/copier.h"
#include "memory/region_parts.h"
#include "memory/short_keys.h"
#include "memory/table_layout.h"
#include "memory/table_memory.h"

namespace weft::memory {

// What a program registers (fi_mr_reg(3), ibv_reg_mr(3)).
struct RegionAttributes {
  DomainId domain;
  Access access = Access::kNone;
  std::uint64_t base = 0;    // virtual address of the first segment
  std::uint64_t length = 0;  // bytes of it
  std::uint64_t start = 0;   // remote address that names `base`: the same, or 0 for offsets
  bool choose_key = false;   // the table chooses the key (FI_MR_PROV_KEY)
  RegionKey key;             // otherwise the program does
  // Further segments: their bytes follow those of the first one in the peers' addresses.
  std::span<const LocalRange> rest{};
  bool short_key = false;     // the key that the table chooses has 32 bits (ibv_reg_mr(3))
  std::uint32_t binding = 0;  // the endpoint or queue pair that alone may access it; 0: any
  bool disabled = false;      // refuses all accesses until RegionTable::enable()
  // The number of its authorization key, which the caller keeps as long as the region is there.
  std::uint32_t authorization = 0;
  // Memory of a device: with a copier. Accesses by the owner alone.
  DeviceMemory device = {};
};

// A live registration: where it is and what it is called.
struct Registration {
  std::uint32_t slot = 0;
  RegionKey key;
  bool short_key = false;  // the table chose the key, of 32 bits
};

// The one table of this process, shared with all processes that access its memory. Functions may be
// called by any thread. Adding and removing costs the same for every length.
class RegionTable {
 public:
  // Makes the table's file in `directory`, or a table without a file, for this process alone, when
  // that is empty. Errors: those of SharedFile::create(), reserve() and publish() and of mmap(2).
  static Result<std::unique_ptr<RegionTable>> create(const std::string& directory);

  // The bytes of what is to be registered. Error: EINVAL when a segment or the remote addresses
  // wrap around 2^64.
  static Result<std::uint64_t> size_of(const RegionAttributes& attributes);

  // The file's name within the directory, for peers.
  const std::string& name() const { return name_; }

  // The table for this process's own use: accesses that it carries out in its memory for peers, or
  // for itself. It tells regions by a private copy, because peers can write into the file.
  std::shared_ptr<RegionTableView> for_owner() const;

  // Registers. Errors: those of size_of(), ENOKEY when the key is taken in that domain, ENOSPC when
  // kMaxRegions are registered or shared memory is exhausted, EINVAL when there are more than
  // kMaxSegments, EPERM in a forked child of the table's process.
  Result<Registration> add(const RegionAttributes& attributes);

  // Registers other memory, in another domain or with other rights under the same key, as a barrier
  // (ibv_rereg_mr(3)): when it returns no peer uses the former ones. Errors: EINVAL when the memory
  // wraps around 2^64 or has several segments, after which the region is as before; EBUSY as
  // remove(), after which the region is closed.
  Status replace(const Registration& registration, const RegionAttributes& attributes,
                 int timeout_ms = 5000);

  // Allows accesses to a disabled region, through the endpoint or queue pair `binding` only unless
  // that is 0 (fi_mr_enable(3)).
  void enable(const Registration& registration, std::uint32_t binding = 0);

  // Has accesses refused (kDisabled), waits for those that are under way, and then calls `reread`,
  // if it is not empty, which may open and close bytes of the region, but not add or remove any
  // (fi_mr_refresh(3)). Afterwards the region is enabled if it was before. One call at a time for a
  // region. Errors: EBUSY as remove(), ENOSPC for more than kMaxParts and as add(), EPERM in a
  // forked child; the parts are as before then.
  Status refresh(const Registration& registration, const std::function<void(RegionParts&)>& reread,
                 int timeout_ms = 5000);

  // The bytes of a region. (They change by refresh().)
  RegionParts parts_of(const Registration& registration) const;

  // Has users tell this process's endpoints of every access to the region, from now on, that needs
  // one of the rights `access` (fi_mr_bind(3)).
  void report_accesses(const Registration& registration, Access access);

  // Deregisters, as a barrier: when it returns no peer touches the region any more and none will.
  // Waits for copies that are under way. Errors: EBUSY when a peer that is alive but stopped stayed
  // in the region for longer than `timeout_ms`; the region is then closed to everybody else.
  Status remove(const Registration& registration, int timeout_ms = 5000);

 private:
  RegionTable(std::shared_ptr<TableMemory> memory, std::string name);
  RegionSlot& slot(std::uint32_t number) const { return memory_->slots()[number]; }
  void publish(std::uint32_t slot_number) const;
  std::atomic<std::uint32_t>* index(IndexWord word) const { return memory_->index(word); }
  os::SharedFile& file() const { return memory_->file(); }
  TableHeader& header() const { return memory_->header(); }
  bool key_taken(DomainId domain, RegionKey key) const;
  RegionKey unused_key(DomainId domain) const;
  Result<std::uint32_t> take_slot();
  Result<std::uint32_t> take_slots(const RegionAttributes& attributes);
  void store_segment(std::uint32_t slot_number, std::uint64_t base, std::uint64_t length,
                     std::uint32_t next, std::uint32_t states = 0) const;
  Status store_parts(std::uint32_t first, const RegionParts& parts);
  bool suspend(std::uint32_t slot_number);
  void resume(std::uint32_t slot_number, bool enabled);
  void free_slots(std::uint32_t first);
  Status make_room_in_index();
  Status rebuild_index(IndexWord next);
  void insert_into_index(IndexWord word, std::uint32_t slot_number);
  void erase_from_index(std::uint32_t slot_number);
  bool wait_until_unused(std::uint32_t slot_number, int timeout_ms);
  bool used_by_anybody(std::uint32_t slot_number) const;
  bool close(std::uint32_t slot_number);
  void fill(RegionSlot& fresh, const RegionAttributes& attributes, RegionKey key,
            std::uint64_t size) const;

  const std::shared_ptr<TableMemory> memory_;
  const std::string name_;
  std::shared_ptr<StripeTable> stripes_;
  const std::shared_ptr<DeviceRegions> devices_ = std::make_shared<DeviceRegions>();
  std::mutex mutex_;
  ShortKeys short_keys_;
  std::vector<std::uint32_t> free_slots_;
  std::uint32_t slots_end_ = 0;       // slots from here on were never used
  std::uint32_t slots_reserved_ = 0;  // slots from here on have no memory yet
  std::uint64_t live_ = 0;            // regions
  IndexWord word_;                    // the index in use
  std::uint64_t index_filled_ = 0;    // entries of the current index that are not 0
};

}  // namespace weft::memory
