// SPDX-License-Identifier: BSD-2-Clause
// Which terms do an application and weft agree on? All attributes of one endpoint and its domain.
#pragma once

#include <rdma/fabric.h>

#include <cstdint>

#include "base/result.h"
#include "offer.h"
#include "terms.h"

namespace weft::fabric {

// The agreed attributes, complete except for names and addresses. No pointer in it is set, but
// those to the authorization keys of the hints.
struct Contract {
  std::uint64_t caps = 0;
  std::uint64_t mode = 0;  // FI_LOCAL_MR, where mr_mode is a name that does not say FI_MR_LOCAL
  fi_tx_attr tx{};
  fi_rx_attr rx{};
  fi_ep_attr ep{};
  fi_domain_attr domain{};
};

// What weft agrees to for `hints` (null: no wish at all; any attribute pointer in it may be null),
// asked through API `api_version`, with an endpoint of the offered type. The contract, given back
// as hints, is agreed to unchanged.
// Pure. Errors: FI_ENODATA, with a message that names the first attribute that cannot be met, and
// the registration contract of the terms.
Result<Contract> agree_contract(std::uint32_t api_version, const fi_info* hints,
                                const TypeOffer& offer, const Terms& terms = {});

// May a domain be opened with the domain attributes of `info`, which a program may have changed
// since fi_getinfo(3)? Names and objects are not looked at. What is zero is the provider's choice.
// Errors: EINVAL, with a message that names the first attribute that is beyond the offer.
Status check_domain(std::uint32_t api_version, const fi_info& info, const Terms& terms);

// The same for an endpoint of the offered type: capabilities, and attributes of the endpoint and
// its contexts.
Status check_endpoint(const fi_info& info, const TypeOffer& offer, const Terms& terms = {});

}  // namespace weft::fabric
