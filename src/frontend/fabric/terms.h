// SPDX-License-Identifier: BSD-2-Clause
// What do the user's settings and this host make of the offer?
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/options.h"
#include "offer.h"

namespace weft::fabric {

struct Terms {
  int mr_modes = 0;  // mr_mode bits that regions require of the application
  std::uint64_t domain_caps = kDomainCaps;
  std::size_t endpoints = kObjectCount;  // at most; each takes a UDP port
};

// FI_REMOTE_COMM needs the network.
Terms terms_of(const Options& options);

// The offer without the capabilities that the terms lack.
TypeOffer offer_under(const TypeOffer& offer, const Terms& terms);

}  // namespace weft::fabric
