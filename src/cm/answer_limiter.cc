// SPDX-License-Identifier: BSD-2-Clause
// How many answers that no state stands behind may be sent?
#include "answer_limiter.h"

#include <algorithm>
#include <chrono>

#include "entries.h"

namespace weft::cm {
namespace {

constexpr std::size_t kSources = 256;

}  // namespace

AnswerLimiter::AnswerLimiter(const AnswerRates& rates, std::uint64_t seed)
    : rates_(rates), seed_(seed) {
  total_.tokens = rates.burst;
}

bool AnswerLimiter::take(const os::SocketAddress& to, Time now) {
  if (sources_.empty()) sources_.resize(kSources, {static_cast<double>(rates_.burst), now});
  Bucket& source = sources_[hash_of(to, seed_) % kSources];
  // The source first: one that sends without end must not use up the tokens of all.
  if (!fill(source, rates_.per_source_and_second, now)) return false;
  if (!fill(total_, rates_.per_second, now)) return false;
  source.tokens -= 1;
  total_.tokens -= 1;
  return true;
}

// True when it holds a token.
bool AnswerLimiter::fill(Bucket& bucket, unsigned per_second, Time now) const {
  const std::chrono::duration<double> passed = now - bucket.filled;
  bucket.filled = now;
  bucket.tokens = std::min<double>(rates_.burst, bucket.tokens + passed.count() * per_second);
  return bucket.tokens >= 1;
}

}  // namespace weft::cm
