// SPDX-License-Identifier: BSD-2-Clause
// Which packets are missing?
#include "transport/psn_ranges.h"

#include <algorithm>

namespace weft::transport {
namespace {

PsnRange between(Psn first, Psn end) {
  return {first, end.before(first) ? 0 : static_cast<std::uint32_t>(end.since(first))};
}

}  // namespace

bool PsnRanges::has(Psn psn) const {
  return std::any_of(ranges_.begin(), ranges_.end(),
                     [psn](const PsnRange& range) { return range.has(psn); });
}

PsnRange PsnRanges::first_in(PsnRange range) const {
  for (const PsnRange& each : ranges_) {
    const Psn begin = each.first.before(range.first) ? range.first : each.first;
    const Psn end = range.end().before(each.end()) ? range.end() : each.end();
    if (begin.before(end)) return between(begin, end);
  }
  return {range.first, 0};
}

void PsnRanges::add(PsnRange range) {
  if (range.count == 0) return;
  // All that the new one overlaps or touches become one.
  const auto first = std::find_if(ranges_.begin(), ranges_.end(), [&](const PsnRange& old) {
    return !old.end().before(range.first);
  });
  auto last = first;
  for (; last != ranges_.end() && !range.end().before(last->first); ++last) {
    const Psn begin = last->first.before(range.first) ? last->first : range.first;
    const Psn end = range.end().before(last->end()) ? last->end() : range.end();
    range = between(begin, end);
    count_ -= last->count;
  }
  count_ += range.count;
  ranges_.insert(ranges_.erase(first, last), range);
}

void PsnRanges::remove(PsnRange range) {
  if (range.count == 0) return;
  for (std::size_t i = 0; i < ranges_.size();) {
    const PsnRange old = ranges_[i];
    if (!old.first.before(range.end()) || !range.first.before(old.end())) {
      ++i;
      continue;
    }
    const PsnRange before = between(old.first, range.first);
    const PsnRange after = between(range.end(), old.end());
    count_ -= old.count - before.count - after.count;
    const auto at = ranges_.erase(ranges_.begin() + static_cast<std::ptrdiff_t>(i));
    const auto behind = after.count != 0 ? ranges_.insert(at, after) : at;
    if (before.count != 0) ranges_.insert(behind, before);
    i += (before.count != 0 ? 1 : 0) + (after.count != 0 ? 1 : 0);
  }
}

void PsnRanges::forget_before(Psn psn) {
  while (!ranges_.empty() && ranges_.front().first.before(psn)) {
    const PsnRange first = ranges_.front();
    remove(first.end().before(psn) ? first : between(first.first, psn));
  }
}

void PsnRanges::clear() {
  ranges_.clear();
  count_ = 0;
}

}  // namespace weft::transport
