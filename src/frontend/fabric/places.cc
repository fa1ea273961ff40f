// SPDX-License-Identifier: BSD-2-Clause
// How many objects of one kind may be open at once, and is there a place for one more? fi_domain(3)
#include "places.h"

#include "log.h"
#include "offer.h"

namespace weft::fabric {
namespace {

std::size_t limit_of(std::size_t chosen, std::size_t offered) {
  return chosen != 0 ? chosen : offered;
}

// Without an ephemeral port the program chooses the ports of its endpoints.
std::size_t endpoints_of(const Terms& terms) {
  return terms.endpoints != 0 ? terms.endpoints : kObjectCount;
}

std::string regions_of(const Terms& terms) {
  return terms.contract.empty() ? "mr_cnt" : "contract " + terms.contract + ": mr_cnt";
}

}  // namespace

// Never more than the most for a moment, which another thread would be refused for.
Places::Reservation Places::take() {
  std::size_t taken = taken_;
  while (taken < most_) {
    if (taken_.compare_exchange_weak(taken, taken + 1)) return Reservation(*this);
  }
  log_warning(FI_LOG_DOMAIN, "{} {}: all are taken", attribute_, most_);
  return {};
}

DomainPlaces::DomainPlaces(const fi_domain_attr& attributes, const Terms& terms)
    : queues("cq_cnt", limit_of(attributes.cq_cnt, kObjectCount)),
      counters("cntr_cnt", limit_of(attributes.cntr_cnt, kObjectCount)),
      endpoints("ep_cnt", limit_of(attributes.ep_cnt, endpoints_of(terms))),
      transmit_contexts("tx_ctx_cnt", limit_of(attributes.tx_ctx_cnt, endpoints_of(terms))),
      receive_contexts("rx_ctx_cnt", limit_of(attributes.rx_ctx_cnt, endpoints_of(terms))),
      regions(regions_of(terms), limit_of(attributes.mr_cnt, terms.mr_cnt)),
      sharing_transmit(limit_of(attributes.max_ep_stx_ctx, endpoints_of(terms))),
      sharing_receive(limit_of(attributes.max_ep_srx_ctx, endpoints_of(terms))) {}

}  // namespace weft::fabric
