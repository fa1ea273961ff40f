// SPDX-License-Identifier: BSD-2-Clause
// How does a completion keep what is known of a refused access?
#include "device/completion.h"

#include <algorithm>

namespace weft::device {

// `source` is the start of a region that is known, and `vendor` its length; without one `vendor` is
// the number of ranges.
void Completion::refuse(int error, const RefusedAccess& refused) {
  end(error, refused.reason);
  length = refused.range.length;
  data = refused.range.key.v;
  buffer = reinterpret_cast<void*>(refused.range.address);
  source = refused.region_known ? refused.region_start : kUnknownSource;
  vendor = refused.region_known ? std::min(refused.region_length, kMaxVendor) : refused.ranges;
}

RefusedAccess Completion::refused() const {
  RefusedAccess refused;
  refused.reason = reason;
  refused.range = {reinterpret_cast<std::uint64_t>(buffer), length, RegionKey{data}};
  refused.region_known = source != kUnknownSource;
  if (refused.region_known) {
    refused.region_start = source;
    refused.region_length = vendor;
  } else {
    refused.ranges = static_cast<std::uint32_t>(vendor);
  }
  return refused;
}

}  // namespace weft::device
