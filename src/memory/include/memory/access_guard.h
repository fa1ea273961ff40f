// SPDX-License-Identifier: BSD-2-Clause
// May this access to a peer's memory happen, and if not, why not?
#pragma once

#include <memory>
#include <span>
#include <string>

#include "base/refused_access.h"
#include "base/result.h"
#include "base/types.h"
#include "memory/device_regions.h"
#include "memory/stripe_locks.h"
#include "memory/table_layout.h"
#include "memory/table_memory.h"

namespace weft::memory {

// Why an access was refused.
enum class AccessError : int {
  kNone = 0,
  kUnknownKey = 1,  // no such key in the target's domain: never registered, closed, or another's
  kBeforeStart = 2,
  kPastEnd = 3,
  kWraps = 4,          // address + length passes 2^64
  kNoRight = 5,        // the region lacks the right to read or to write
  kTooMany = 6,        // more than kHazards ranges in one operation
  kNotServed = 7,      // the target's endpoint was not opened for such accesses
  kSplitElement = 8,   // an element of an atomic operation lies in two segments
  kDisabled = 9,       // the region is not enabled yet, or is being refreshed
  kOtherBinding = 10,  // the region is bound to another endpoint or queue pair
  kNotRefreshed = 11,  // bytes of the range were not mapped when they were last looked at
  // The region, or the target's endpoint, has another authorization key.
  kOtherAuthorization = 12,
  // From here on reasons of initiators, which no packet carries.
  kNotMapped = 32,  // the program has not mapped the key (fi_mr_map_raw(3))
};
inline constexpr AccessError kLastAccessError = AccessError::kOtherAuthorization;  // of a target

// In the place of a reason, in packets: the access was allowed, but the driver of the target's
// device has failed.
inline constexpr std::uint8_t kCopyFailed = 14;

// A sentence for the refusal, for logs and fi_cq_strerror(3).
const char* describe(AccessError refusal);

// Added to an AccessError it is the reason why a local buffer of libfabric (FI_MR_LOCAL) must not
// be used. Reasons from here on never travel in packets.
inline constexpr int kLocalRefusal = 16;
static_assert(static_cast<int>(kLastAccessError) < kLocalRefusal);

// The sentence for such a refusal of a local buffer.
const char* describe_local(AccessError refusal);
// The sentence for the reason of either kind.
const char* describe(const RefusedAccess& refused);

// The region table of one process as its users see it: opened once per process and shared.
class RegionTableView {
 public:
  // Opens the table `name` in `directory`. `stripes` are those of that directory, if this process
  // has them already. Errors: those of SharedFile::open(), EPROTO when it is no table of this
  // version, those of TableMemory::of_user().
  static Result<std::shared_ptr<RegionTableView>> open(const std::string& directory,
                                                       const std::string& name,
                                                       std::shared_ptr<StripeTable> stripes = {});
  // `devices`: of the owner.
  RegionTableView(std::shared_ptr<TableMemory> memory, std::shared_ptr<StripeTable> stripes,
                  std::shared_ptr<const DeviceRegions> devices = nullptr)
      : memory_(std::move(memory)), stripes_(std::move(stripes)), devices_(std::move(devices)) {}

  // Other views of the same directory may have the same.
  const std::shared_ptr<StripeTable>& stripes() const { return stripes_; }

 private:
  friend class AccessGuard;

  const std::shared_ptr<TableMemory> memory_;
  const std::shared_ptr<StripeTable> stripes_;
  const std::shared_ptr<const DeviceRegions> devices_;
};

// The endpoint of the owner that an access goes through: the domain in which keys are looked up,
// the rights that any access may need there, whatever its region allows, a number of the endpoint,
// which regions may be bound to, and that of its authorization key, which they must have.
struct Through {
  Through(DomainId looked_up_in,
          Access may_need = Access::kRemoteRead | Access::kRemoteWrite,  // NOLINT(*-explicit-*)
          std::uint32_t number = 0, std::uint32_t key_number = 0)
      : domain(looked_up_in), served(may_need), endpoint(number), authorization(key_number) {}

  DomainId domain;
  Access served;
  std::uint32_t endpoint;
  std::uint32_t authorization;  // of the owner's numbers; 0: none
};

// What AccessGuard::check_and_pin() has allowed, or why not.
struct Grant {
  AccessError error = AccessError::kNone;
  std::size_t culprit = 0;  // the number of the refused range
  // Where the bytes of the ranges are in the owner, in their order: one for each range, and one
  // more for each segment of a region that a range goes on in.
  std::span<const LocalRange> segments;

  bool ok() const { return error == AccessError::kNone; }
};

// One user's access to a table: an initiator's, or the owner's own for a peer. Used by one thread
// at a time. While ranges are held, the owner cannot finish closing their regions, so they are held
// only for the time of a copy.
class AccessGuard {
 public:
  // Takes a user record. Errors: EUSERS when all kMaxUsers are taken; those of
  // SharedFile::reserve(), as records get memory when they are used.
  static Result<std::unique_ptr<AccessGuard>> attach(std::shared_ptr<RegionTableView> table);
  ~AccessGuard();
  AccessGuard(const AccessGuard&) = delete;
  AccessGuard& operator=(const AccessGuard&) = delete;

  // Checks every range against its region in the domain and the right `need`. When all are allowed,
  // their regions stay pinned until release() or the next call, and the grant, which stays as long,
  // names their virtual addresses in the owner. When one is refused nothing is pinned.
  // A range of no bytes is allowed whatever its key and address are, and has the address null:
  // neither is validated for a zero-length access (IBTA 9.7.4.1.1). Every range consists of
  // elements of so many bytes, none of which may lie in two segments.
  Grant check_and_pin(const Through& through, Access need, std::span<const RemoteRange> ranges,
                      std::size_t element = 1);

  // The segments of the last grant.
  std::span<const LocalRange> granted() const { return {granted_, granted_count_}; }

  // How the bytes of the last grant, of one range, are reached: without a copier by the processor.
  DeviceMemory device_memory() const {
    return device_slot_ == kMaxRegions ? DeviceMemory{} : find_device_memory();
  }

  // Lets the regions go. Idempotent.
  void release();

  // Keys of those regions of the last check_and_pin() whose owner is to be told of such an access,
  // each once.
  std::span<const RegionKey> keys_to_report() const { return {keys_to_report_, report_count_}; }

  // Keeps the atomic operations of all other guards, in whatever process, off the memory of this
  // segment of the last grant until unlock(); none may be kept off yet. The segment has 1 to
  // kNumberedPage bytes. Returns 0 or an errno of StripeLocks::lock().
  int lock(std::size_t segment, LockWait wait);
  void unlock() { stripes_.unlock(); }

  // Which of its `ranges` the last check_and_pin() refused, with what is known of its region.
  RefusedAccess refused(AccessError refusal, std::span<const RemoteRange> ranges) const;
  // The same with numbers in a sentence (memory/explanation.h), as verbs programs know the terms.
  std::string explain(AccessError refusal, Access need, const RemoteRange& range) const;

 private:
  AccessGuard(std::shared_ptr<RegionTableView> table, std::uint32_t record);
  // What a slot said.
  struct Found {
    Access access = Access::kNone;  // with the report_bits()
    std::uint64_t base = 0;
    std::uint64_t length = 0;
    std::uint64_t start = 0;
    std::uint32_t next = 0;
    std::uint32_t binding = 0;
  };
  static AccessError refusal_of(const Found& found, const Through& through);
  AccessError check_and_pin_one(const Through& through, Access need, const RemoteRange& range,
                                std::size_t hazard, std::size_t element);
  AccessError walk_segments(std::uint64_t offset, std::uint64_t length, std::size_t element);
  bool find(DomainId domain, RegionKey key, std::size_t hazard, Found& found);
  bool search(IndexWord word, DomainId domain, RegionKey key, std::size_t hazard, Found& found,
              int& tries);
  bool read_slot(std::uint32_t number, DomainId domain, RegionKey key, std::size_t hazard,
                 Found& found, int& tries);
  void note_for_report(const Found& found, Access need, RegionKey key);
  void grant(std::uint64_t base, std::uint64_t length);
  DeviceMemory find_device_memory() const;
  std::uint32_t shift_of(std::uint64_t address, std::uint64_t length) const;
  std::uint32_t find_shift(RegionSlot& region) const;

  const std::shared_ptr<RegionTableView> table_;
  const std::uint32_t record_;
  UserRecord& mine_;
  const bool must_fence_;
  RegionSlot* const slots_;
  StripeLocks stripes_;
  std::size_t held_ = 0;
  LocalRange granted_[kHazards * kMaxSegments];
  std::uint32_t granted_slots_[kHazards * kMaxSegments];  // of their regions
  std::size_t granted_count_ = 0;
  RegionKey keys_to_report_[kHazards];
  std::size_t report_count_ = 0;
  std::uint32_t last_slot_ = kMaxRegions;  // where the last key was found; the next is often there
  std::uint32_t device_slot_ = kMaxRegions;  // of a granted region that is memory of a device
  std::uint32_t culprit_ = 0;                // the number of the last refused range
  Found refused_;  // the region of the last refused range, if there was one
};

}  // namespace weft::memory
