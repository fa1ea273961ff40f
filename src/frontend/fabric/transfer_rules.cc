// SPDX-License-Identifier: BSD-2-Clause
// What does the registration contract of a domain ask of its transfers?
#include "transfer_rules.h"

#include <rdma/fi_errno.h>

#include "log.h"

namespace weft::fabric {

using memory::AccessError;

bool TransferRules::has_any(const Terms& terms) {
  return (terms.mr_modes & FI_MR_LOCAL) != 0 || terms.max_message_size < kMaxMessageSize ||
         terms.max_inject_size < kInjectSize;
}

int TransferRules::check_size(std::size_t length, bool injected) const {
  return length > (injected ? max_inject_size_ : max_message_size_) ? -FI_EMSGSIZE : 0;
}

int TransferRules::check_buffers(std::initializer_list<LocalUse> uses) const {
  if (descriptors_ == nullptr) return 0;
  for (const LocalUse& use : uses) {
    for (std::size_t i = 0; i < use.buffers.size(); ++i) {
      const LocalRange& buffer = use.buffers[i];
      const void* const descriptor = use.descriptors != nullptr ? use.descriptors[i] : nullptr;
      const AccessError error = descriptors_->check(buffer, descriptor, use.need);
      if (error == AccessError::kNone) continue;
      log_warning(FI_LOG_EP_DATA, "local buffer of {} bytes at {} with descriptor {}: {}",
                  buffer.length, fmt::ptr(buffer.base), fmt::ptr(descriptor),
                  memory::describe_local(error));
      return memory::kLocalRefusal + static_cast<int>(error);
    }
  }
  return 0;
}

}  // namespace weft::fabric
