// SPDX-License-Identifier: BSD-2-Clause
// How many answers that no state stands behind may be sent?
#pragma once

#include <cstdint>
#include <vector>

#include "base/time.h"
#include "cm/options.h"
#include "os/socket_address.h"

namespace weft::cm {

// Token buckets: one for each of 256 groups of sources, by a hash of the address that no peer can
// predict, and one for all together. Their memory is fixed, whatever arrives.
class AnswerLimiter {
 public:
  AnswerLimiter(const AnswerRates& rates, std::uint64_t seed);

  // True when an answer may be sent to that address; it then counts.
  bool take(const os::SocketAddress& to, Time now);

 private:
  struct Bucket {
    double tokens = 0;
    Time filled{};
  };
  bool fill(Bucket& bucket, unsigned per_second, Time now) const;

  const AnswerRates rates_;
  const std::uint64_t seed_;
  Bucket total_;
  std::vector<Bucket> sources_;  // empty until the first answer
};

}  // namespace weft::cm
