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
                                   std::span<const RemoteRange> remote,
                                   DeviceBuffers& devices) const {
  const RefusedAccess refused =
      descriptors_ != nullptr ? check_buffers(local, devices) : RefusedAccess{};
  return refused.reason == 0 && raw_keys_ != nullptr ? check_keys(remote) : refused;
}

RefusedAccess TransferRules::check_buffers(std::initializer_list<LocalUse> uses,
                                           DeviceBuffers& devices) const {
  std::size_t list = 0;
  for (const LocalUse& use : uses) {
    for (std::size_t i = 0; i < use.buffers->size(); ++i) {
      memory::DeviceMemory& device = devices.of[list][i];
      const RefusedAccess refused = check_buffer(use, i, device);
      if (refused.reason != 0) return refused;
      devices.any = devices.any || device.copier != nullptr;
    }
    ++list;
  }
  return {};
}

// Without a descriptor a buffer that needs none is memory of the host.
RefusedAccess TransferRules::check_buffer(const LocalUse& use, std::size_t number,
                                          memory::DeviceMemory& device) const {
  const LocalRange& buffer = (*use.buffers)[number];
  const void* const descriptor = use.descriptors != nullptr ? use.descriptors[number] : nullptr;
  const bool is_free = use.injected || !all_described_;
  const bool is_looked_at = memory_ != nullptr && descriptor != nullptr;
  if (is_free && !is_looked_at) {
    if (memory_ == nullptr || !memory_->is_of_device(buffer.base)) return {};
  }
  return descriptors_->check(buffer, descriptor, use.need, device);
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
