// SPDX-License-Identifier: BSD-2-Clause
// What do the user's settings and this host make of the offer?
#include "terms.h"

#include <algorithm>

#include "os/udp_port.h"

namespace weft::fabric {

Terms terms_of(const Options& options) {
  Terms terms;
  if (options.contract == RegistrationContract::kMap) terms.mr_modes = kMapMrModes;
  if (!options.links.udp) terms.domain_caps = FI_LOCAL_COMM;
  terms.endpoints = std::min(kObjectCount, os::free_ports());
  return terms;
}

TypeOffer offer_under(const TypeOffer& offer, const Terms& terms) {
  TypeOffer narrowed = offer;
  narrowed.caps &= ~kDomainCaps | terms.domain_caps;
  return narrowed;
}

}  // namespace weft::fabric
