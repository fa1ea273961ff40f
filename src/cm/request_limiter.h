// SPDX-License-Identifier: BSD-2-Clause
// Which requests are taken while a flood of forged ones arrives?
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "base/request_credits.h"
#include "base/time.h"
#include "cm/options.h"
#include "cm/remote.h"

namespace weft::cm {

// A request takes a credit, which comes back when its connection is established: honest requesters
// find credits however many they are. Forged ones use them up, and share those that come back with
// the time. The lower half is for requests that have come before, since an honest requester repeats
// its REQ. Its memory is fixed: 64 KiB, which it has during a flood only.
class RequestLimiter {
 public:
  // `seed` is a random number that no peer knows.
  RequestLimiter(const RequestRates& rates, std::uint64_t seed)
      : rates_(rates), seed_(seed), credits_(rates.most) {}

  // Whether that request is to be taken. Those of this host's mailbox always are.
  bool take(const Remote& from, std::uint64_t transaction, Time now);
  // Credits of connections that are established.
  void give_back(unsigned count);
  // Credits that agents of other ports return.
  const std::shared_ptr<RequestCredits>& returned() const { return returned_; }
  // Only requests that have come before are taken.
  bool is_short() const { return credits_ < rates_.most / 2; }

 private:
  // Younger requests take the places of older ones.
  using Seen = std::array<std::uint32_t, 1 << 14>;

  void refill(Time now);
  bool has_come_before(const Remote& from, std::uint64_t transaction);

  const RequestRates rates_;
  const std::uint64_t seed_;
  unsigned credits_;
  Time refilled_{};
  std::unique_ptr<Seen> seen_;  // hashes of requests
  std::shared_ptr<RequestCredits> returned_ = std::make_shared<RequestCredits>();
};

}  // namespace weft::cm
