// SPDX-License-Identifier: BSD-2-Clause
// What do the user's settings and this host make of the offer?
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "base/options.h"
#include "offer.h"

namespace weft::fabric {

struct Terms {
  std::string contract;  // its name, if one was chosen
  int mr_modes = 0;      // mr_mode bits that it demands of the application
  std::size_t mr_key_size = kMrKeySize;
  std::size_t mr_iov_limit = kMrIovLimit;
  std::size_t mr_cnt = kMrCount;
  std::size_t max_inject_size = kMaxMessageSize;  // at most; each type has its own, too
  std::size_t max_message_size = kMaxMessageSize;
  fi_progress control_progress = FI_PROGRESS_UNSPEC;  // as agree_control_progress() has it
  fi_progress data_progress = FI_PROGRESS_UNSPEC;
  std::uint64_t domain_caps = kDomainCaps;
  std::size_t endpoints = kObjectCount;  // at most; each takes a UDP port
};

// FI_REMOTE_COMM needs the network.
Terms terms_of(const Options& options);

// Whether peers may access memory of devices through an endpoint with these capabilities.
bool serves_devices(std::uint64_t caps);
// The links of an endpoint with these capabilities, or of a listener for such. Peers of this host
// cannot reach memory of devices: they ask for accesses by packets.
Links links_for(const Options& options, std::uint64_t caps);

// The bits of an mr_mode; FI_MR_BASIC and FI_MR_SCALABLE say nothing against FI_MR_LOCAL.
int mr_bits(int mr_mode);

// The bits of the terms that an endpoint of these capabilities needs. Where no peer accesses
// memory, only local buffers matter, and FI_MR_LOCAL alone is about those.
int mr_modes_for(const Terms& terms, std::uint64_t caps);

// The offer without the capabilities that the terms lack, within their limits.
TypeOffer offer_under(const TypeOffer& offer, const Terms& terms);

}  // namespace weft::fabric
