// SPDX-License-Identifier: BSD-2-Clause
// What do the user's settings and this host make of the offer?
#include "terms.h"

#include <algorithm>

#include "os/udp_port.h"

namespace weft::fabric {

namespace {

static_assert(kDemandLocal == FI_MR_LOCAL && kDemandRaw == FI_MR_RAW);
static_assert(kDemandVirtualAddresses == FI_MR_VIRT_ADDR && kDemandAllocated == FI_MR_ALLOCATED);
static_assert(kDemandProviderKeys == FI_MR_PROV_KEY && kDemandMmuNotify == FI_MR_MMU_NOTIFY);
static_assert(kDemandRmaEvent == FI_MR_RMA_EVENT && kDemandEndpoint == FI_MR_ENDPOINT);

// Bits that are about accesses of peers alone.
constexpr int kTargetMrModes = FI_MR_RAW | FI_MR_VIRT_ADDR | FI_MR_PROV_KEY | FI_MR_RMA_EVENT;

fi_progress progress_of(ProgressModel model) {
  switch (model) {
    case ProgressModel::kChosen:
      return FI_PROGRESS_UNSPEC;
    case ProgressModel::kAutomatic:
      return FI_PROGRESS_AUTO;
    case ProgressModel::kManual:
      return FI_PROGRESS_MANUAL;
  }
  return FI_PROGRESS_UNSPEC;
}

void set_unless_zero(std::size_t& limit, std::size_t value) {
  if (value != 0) limit = value;
}

}  // namespace

Terms terms_of(const Options& options) {
  Terms terms;
  const RegistrationContract& contract = options.contract;
  if (contract.name != RegistrationContract().name) terms.contract = contract.name;
  terms.mr_modes = static_cast<int>(contract.demands);
  set_unless_zero(terms.mr_key_size, contract.key_size);
  set_unless_zero(terms.mr_iov_limit, contract.segments);
  set_unless_zero(terms.mr_cnt, contract.regions);
  set_unless_zero(terms.max_inject_size, contract.inject_size);
  set_unless_zero(terms.max_message_size, contract.message_size);
  terms.control_progress = progress_of(contract.control);
  terms.data_progress = progress_of(contract.data);
  if (!options.links.udp) terms.domain_caps = FI_LOCAL_COMM;
  terms.endpoints = std::min(kObjectCount, os::free_ports());
  return terms;
}

bool serves_devices(std::uint64_t caps) {
  const bool serves = (caps & kRmaCaps) != 0 && (caps & kRmaTargetModifiers) != 0;
  return serves && (caps & FI_HMEM) != 0;
}

Links links_for(const Options& options, std::uint64_t caps) {
  Links links = options.links;
  if (serves_devices(caps)) links.shm = false;
  return links;
}

int mr_bits(int mr_mode) {
  if (mr_mode == FI_MR_BASIC) return kMapMrModes | FI_MR_LOCAL;
  return mr_mode == FI_MR_SCALABLE ? FI_MR_LOCAL : mr_mode;
}

int mr_modes_for(const Terms& terms, std::uint64_t caps) {
  const int devices = (caps & FI_HMEM) != 0 ? FI_MR_HMEM : 0;
  if ((caps & kRmaCaps) != 0) return terms.mr_modes | devices;
  const int local = (terms.mr_modes & FI_MR_LOCAL) != 0 ? terms.mr_modes & ~kTargetMrModes : 0;
  return local | devices;
}

TypeOffer offer_under(const TypeOffer& offer, const Terms& terms) {
  TypeOffer narrowed = offer;
  narrowed.caps &= ~kDomainCaps | terms.domain_caps;
  narrowed.max_message_size = std::min(offer.max_message_size, terms.max_message_size);
  narrowed.max_inject_size = std::min(offer.max_inject_size, terms.max_inject_size);
  return narrowed;
}

}  // namespace weft::fabric
