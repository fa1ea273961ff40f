// SPDX-License-Identifier: BSD-2-Clause
// Which authorization key does an object of a program have? fi_domain(3), fi_endpoint(3), fi_mr(3)
#pragma once

#include <rdma/fabric.h>

#include <cstddef>
#include <cstdint>

#include "base/authorization.h"
#include "base/result.h"
#include "device/device.h"

namespace weft::fabric {

// Whether attributes have a key, as far as the API knows any: earlier structures end before it.
template <class Attributes>
bool names_key(std::uint32_t api_version, const Attributes& attributes) {
  return api_version >= FI_VERSION(1, 5) && attributes.auth_key_size != 0;
}

// Errors: EINVAL where `key` is null or the length not 1 to kMaxAuthorizationKey, ENOSPC as
// Authorizations::take().
Status check_key(const void* key, std::size_t size);
Result<AuthorizationPtr> take_key(device::Device& device, const void* key, std::size_t size);

// The key in attributes of a domain, an endpoint or a region, whose bytes are the caller's again
// afterwards; else `usual`. Errors: those of take_key().
template <class Attributes>
Result<AuthorizationPtr> authorization_in(const Attributes& attributes, std::uint32_t api_version,
                                          device::Device& device, const AuthorizationPtr& usual) {
  if (!names_key(api_version, attributes)) return usual;
  return take_key(device, attributes.auth_key, attributes.auth_key_size);
}

// Gives attributes of an answer a copy of the key that they name, which fi_freeinfo(3) frees. False
// without memory: they name none then.
template <class Attributes>
bool own_key(Attributes& attributes);
extern template bool own_key(fi_domain_attr&);
extern template bool own_key(fi_ep_attr&);

// Overwrites the keys of a list.
void wipe_keys(fi_info* list);

}  // namespace weft::fabric
