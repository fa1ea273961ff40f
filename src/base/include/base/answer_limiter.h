// SPDX-License-Identifier: BSD-2-Clause
// How many answers that no state stands behind may be sent?
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "base/time.h"

namespace weft {

struct AnswerRates {
  unsigned per_second = 1000;  // in total
  std::uint8_t per_source_and_second = 50;
};

// Their receivers may be forged, so that each second has a limit for each source and one for all.
// Its memory is 256 bytes from the first answer on, whatever arrives. One thread at a time.
class AnswerLimiter {
 public:
  // Sources that share a group by their hashes share the limit of a source, too.
  static constexpr std::size_t kGroups = 256;

  explicit AnswerLimiter(const AnswerRates& rates = {}) : rates_(rates) {}

  // True when an answer may be sent, and then it counts. `source` is a hash of its receiver's
  // address, which no peer can predict.
  bool take(std::uint64_t source, Time now) {
    if (sent_to_ == nullptr || now - second_ >= std::chrono::seconds(1)) {
      second_ = now;
      sent_ = 0;
      sent_to_ = std::make_unique<std::array<std::uint8_t, kGroups>>();
    }
    std::uint8_t& to_source = (*sent_to_)[source % kGroups];
    if (to_source >= rates_.per_source_and_second || sent_ >= rates_.per_second) return false;
    ++to_source;
    ++sent_;
    return true;
  }

 private:
  AnswerRates rates_;
  Time second_{};  // when the one began that is counted
  unsigned sent_ = 0;
  std::unique_ptr<std::array<std::uint8_t, kGroups>> sent_to_;
};

}  // namespace weft
