// SPDX-License-Identifier: BSD-2-Clause
// What does the registration contract of a domain ask of its transfers?
#include "transfer_rules.h"

#include <fmt/format.h>
#include <rdma/fi_errno.h>

namespace weft::fabric {

using memory::AccessError;

bool TransferRules::has_any(const Terms& terms) {
  return (terms.mr_modes & (FI_MR_LOCAL | FI_MR_RAW)) != 0 ||
         terms.max_message_size < kMaxMessageSize || terms.max_inject_size < kInjectSize;
}

int TransferRules::check_size(std::size_t length, bool injected) const {
  return length > (injected ? max_inject_size_ : max_message_size_) ? -FI_EMSGSIZE : 0;
}

int TransferRules::check(std::initializer_list<LocalUse> local, std::span<const RemoteRange> remote,
                         std::string& why) const {
  const int refusal = descriptors_ != nullptr ? check_buffers(local, why) : 0;
  return refusal == 0 && raw_keys_ != nullptr ? check_keys(remote, why) : refusal;
}

int TransferRules::check_buffers(std::initializer_list<LocalUse> uses, std::string& why) const {
  for (const LocalUse& use : uses) {
    for (std::size_t i = 0; i < use.buffers.size(); ++i) {
      const LocalRange& buffer = use.buffers[i];
      const void* const descriptor = use.descriptors != nullptr ? use.descriptors[i] : nullptr;
      const AccessError error = descriptors_->check(buffer, descriptor, use.need);
      if (error == AccessError::kNone) continue;
      why = fmt::format("local buffer of {} bytes at {} with descriptor {}: {}", buffer.length,
                        fmt::ptr(buffer.base), fmt::ptr(descriptor), memory::describe_local(error));
      return memory::kLocalRefusal + static_cast<int>(error);
    }
  }
  return 0;
}

// A range of no bytes is allowed whatever its key is (AccessGuard).
int TransferRules::check_keys(std::span<const RemoteRange> remote, std::string& why) const {
  for (const RemoteRange& range : remote) {
    if (range.length == 0 || raw_keys_->is_mapped(range.key)) continue;
    why = fmt::format("key {:#x}: access of {} bytes at {:#x}: {}", range.key.v, range.length,
                      range.address, describe(AccessError::kNotMapped));
    return static_cast<int>(AccessError::kNotMapped);
  }
  return 0;
}

}  // namespace weft::fabric
