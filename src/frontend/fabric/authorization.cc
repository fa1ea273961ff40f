// SPDX-License-Identifier: BSD-2-Clause
// Which authorization key does an object of a program have?
#include "authorization.h"

#include <fmt/format.h>
#include <rdma/fi_errno.h>

#include <cstdlib>
#include <cstring>
#include <span>

#include "base/hmac_sha256.h"

namespace weft::fabric {

Status check_key(const void* key, std::size_t size) {
  if (key != nullptr && size != 0 && size <= kMaxAuthorizationKey) return {};
  return Error{FI_EINVAL,
               fmt::format("auth_key_size {}{}: 1 to {} are possible", size,
                           key == nullptr ? " without auth_key" : "", kMaxAuthorizationKey)};
}

Result<AuthorizationPtr> take_key(device::Device& device, const void* key, std::size_t size) {
  if (const Status ok = check_key(key, size); !ok) return ok.error();
  return device.authorizations().take({static_cast<const std::byte*>(key), size});
}

template <class Attributes>
bool own_key(Attributes& attributes) {
  if (attributes.auth_key_size == 0) return true;
  void* const copy = std::malloc(attributes.auth_key_size);
  if (copy != nullptr) std::memcpy(copy, attributes.auth_key, attributes.auth_key_size);
  attributes.auth_key = static_cast<std::uint8_t*>(copy);
  if (copy == nullptr) attributes.auth_key_size = 0;
  return copy != nullptr;
}

template bool own_key(fi_domain_attr&);
template bool own_key(fi_ep_attr&);

void wipe_keys(fi_info* list) {
  const auto wipe_in = [](const auto* attributes) {
    if (attributes == nullptr || attributes->auth_key == nullptr) return;
    wipe(std::as_writable_bytes(std::span(attributes->auth_key, attributes->auth_key_size)));
  };
  for (const fi_info* each = list; each != nullptr; each = each->next) {
    wipe_in(each->domain_attr);
    wipe_in(each->ep_attr);
  }
}

}  // namespace weft::fabric
