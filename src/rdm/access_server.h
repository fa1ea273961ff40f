// SPDX-License-Identifier: BSD-2-Clause
// How are a peer's accesses to this endpoint's memory executed and reported?
#pragma once

#include <optional>
#include <vector>

#include "base/budget.h"
#include "memory/own_memory.h"
#include "rdm/message.h"
#include "work/target.h"

namespace weft::rdm {

struct Shared;

// Checks each access of one peer in the region table, executes it, and reports it where it is
// counted or carries data. One thread at a time.
class AccessServer {
 public:
  // The inbox calls the peer `source`. Aliases are charged to `messages`, which outlives this.
  AccessServer(Shared& shared, std::uint32_t source, Budget::Share& messages)
      : shared_(shared), source_(source), messages_(messages) {}

  // Messages of the peer; false or nothing for those that make no sense. A further alias
  // (kAlias), the begin and the end of an access to several ranges, the notice of a write with
  // immediate data, an atomic operation.
  bool know_alias(const MessageHeader& header);
  bool begin_ranges(const MessageHeader& header, std::span<const std::byte> bytes);
  void end_ranges();
  void expect_immediate(const MessageHeader& header);
  // The values that it found go to `fetched`, which has room for kMaxAtomicBytes.
  std::optional<memory::Accessed> execute(const MessageHeader& header,
                                          std::span<const std::byte> bytes, std::byte* fetched);

  // As work::Target has them.
  work::RequestVerdict may_access(Access need, const work::RemoteMemory& memory);
  work::RequestVerdict write(const work::RemoteMemory& memory, std::uint64_t offset,
                             std::span<const std::byte> bytes);
  void written(const work::MessageEnd& end);
  work::RequestVerdict read(const work::RemoteMemory& memory, std::uint64_t offset,
                            std::span<std::byte> out);
  work::RequestVerdict atomic(bool compares, const work::AtomicOperands& what,
                              std::uint64_t& original);
  // An access was refused: the one that was announced is not reported.
  void refuse() { refused_ = true; }
  // Gives memory back.
  void trim() { reported_keys_.shrink_to_fit(); }

 private:
  // An access to several ranges, or in parts: reported as one access.
  struct Announced {
    Access need = Access::kNone;
    bool has_data = false;
  };

  std::optional<RegionKey> region_of(std::uint32_t key) const;
  work::RequestVerdict judge(const memory::Accessed& accessed, const char* operation,
                             const RemoteRange& range);
  void report_atomic(const MessageHeader& header);
  void announce(link::MessageOperation event, const MessageHeader& from);
  void announce_access(Access need, const MessageHeader& from = {});
  void report_keys(Access need);

  Shared& shared_;
  const std::uint32_t source_;
  Budget::Share& messages_;         // of Shared::message_memory
  std::vector<RegionKey> aliases_;  // by number
  std::optional<Announced> announced_;
  std::vector<RegionKey> reported_keys_;  // whose owner hears of the access that is in flight
  MessageHeader write_imm_info_;          // of the write to come
  bool refused_ = false;                  // a part of it
  work::RequestVerdict ranges_;           // of the access to several that is in flight
};

}  // namespace weft::rdm
