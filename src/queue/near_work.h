// SPDX-License-Identifier: BSD-2-Clause
// Which request waits at a link through shared memory?
#pragma once

#include <boost/container/small_vector.hpp>
#include <cstdint>
#include <span>

#include "work/work.h"

namespace weft::queue {

// A request that is not complete, whose list of SGEs is kept.
struct NearWork {  // NOLINT(bugprone-exception-escape): a list of few entries is moved without one
  NearWork(const work::Work& wanted, work::CompletionStatus its_refusal)
      : work(wanted), refusal(its_refusal), sges(wanted.sges.begin(), wanted.sges.end()) {}
  std::span<const work::Segment> list() const { return {sges.data(), sges.size()}; }

  work::Work work;  // without its list
  work::CompletionStatus refusal;
  boost::container::small_vector<work::Segment, 2> sges;
  std::uint64_t done = 0;  // bytes that are copied, or in the ring
  std::uint64_t end = 0;   // of a message in the ring: the position behind its last cell
};

}  // namespace weft::queue
