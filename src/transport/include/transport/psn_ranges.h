// SPDX-License-Identifier: BSD-2-Clause
// Which packets are missing?
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/psn.h"

namespace weft::transport {

// Packets [first, first + count).
struct PsnRange {
  Psn first;
  std::uint32_t count = 0;

  Psn end() const { return first.after(static_cast<std::int32_t>(count)); }
  bool has(Psn psn) const { return !psn.before(first) && psn.before(end()); }
  friend bool operator==(const PsnRange&, const PsnRange&) = default;
};

// A set of packets that are less than 2^23 apart, in their order.
class PsnRanges {
 public:
  bool empty() const { return ranges_.empty(); }
  // How many packets there are.
  std::uint32_t count() const { return count_; }
  // The earliest, and those that follow it without a gap. Not when empty().
  const PsnRange& front() const { return ranges_.front(); }
  bool has(Psn psn) const;
  // The earliest of them that lie in `range`, as far as they follow each other; of count 0 when
  // none does.
  PsnRange first_in(PsnRange range) const;

  // Adds packets, of which some may be there already.
  void add(PsnRange range);
  // Removes packets, of which some may not be there.
  void remove(PsnRange range);
  // Removes all packets before `psn`.
  void forget_before(Psn psn);
  void clear();

  auto begin() const { return ranges_.begin(); }
  auto end() const { return ranges_.end(); }

 private:
  std::vector<PsnRange> ranges_;  // disjoint, in order, with gaps between them
  std::uint32_t count_ = 0;
};

}  // namespace weft::transport
