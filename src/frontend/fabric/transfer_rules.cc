// SPDX-License-Identifier: BSD-2-Clause
// What does the registration contract of a domain ask of its transfers?
#include "transfer_rules.h"

#include <rdma/fi_errno.h>

namespace weft::fabric {

bool TransferRules::has_any(const Terms& terms) {
  return (terms.mr_modes & (FI_MR_LOCAL | FI_MR_RAW)) != 0 ||
         terms.max_message_size < kMaxMessageSize || terms.max_inject_size < kInjectSize;
}

int TransferRules::check_size(std::size_t length, bool injected) const {
  return length > (injected ? max_inject_size_ : max_message_size_) ? -FI_EMSGSIZE : 0;
}

RefusedAccess TransferRules::check(std::initializer_list<LocalUse> local,
                                   std::span<const RemoteRange> remote) const {
  const RefusedAccess refused = descriptors_ != nullptr ? check_buffers(local) : RefusedAccess{};
  return refused.reason == 0 && raw_keys_ != nullptr ? check_keys(remote) : refused;
}

RefusedAccess TransferRules::check_buffers(std::initializer_list<LocalUse> uses) const {
  for (const LocalUse& use : uses) {
    for (std::size_t i = 0; i < use.buffers.size(); ++i) {
      const void* const descriptor = use.descriptors != nullptr ? use.descriptors[i] : nullptr;
      const RefusedAccess refused = descriptors_->check(use.buffers[i], descriptor, use.need);
      if (refused.reason != 0) return refused;
    }
  }
  return {};
}

// A range of no bytes is allowed whatever its key is (AccessGuard).
RefusedAccess TransferRules::check_keys(std::span<const RemoteRange> remote) const {
  for (const RemoteRange& range : remote) {
    if (range.length == 0 || raw_keys_->is_mapped(range.key)) continue;
    return {.reason = static_cast<int>(memory::AccessError::kNotMapped), .range = range};
  }
  return {};
}

}  // namespace weft::fabric
