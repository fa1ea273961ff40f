// SPDX-License-Identifier: BSD-2-Clause
// What does the registration contract of a domain ask of its transfers?
#pragma once

#include <cstddef>
#include <initializer_list>
#include <span>

#include "base/refused_access.h"
#include "base/types.h"
#include "domain_memory.h"
#include "local_descriptors.h"
#include "memory/copier.h"
#include "offer.h"
#include "raw_keys.h"
#include "terms.h"

namespace weft::fabric {

// The descriptors of a call's SGEs, in their order, or null.
using Descriptors = void* const*;

// Local buffers and the right that an operation needs on them.
struct LocalUse {
  std::span<const LocalRange>* buffers;  // the list of the call
  Descriptors descriptors;
  Access need;
  bool injected = false;  // their bytes are copied by the call: they need no descriptor
};

// How the buffers of a call's uses are reached, in their order, if some are memory of devices.
struct DeviceBuffers {
  static constexpr std::size_t kLists = 3;

  memory::DeviceMemory of[kLists][kIovLimit];
  bool any = false;
};

// Rules beyond those of Weft's own offer. Any thread.
class TransferRules {
 public:
  // `descriptors`, `memory` and `raw_keys` outlive the object; null: they are not looked at. With
  // `memory` (FI_MR_HMEM) buffers may be memory of devices.
  TransferRules(const Terms& terms, LocalDescriptors* descriptors, const DomainMemory* memory,
                const RawKeys* raw_keys)
      : max_message_size_(terms.max_message_size),
        max_inject_size_(terms.max_inject_size),
        all_described_((terms.mr_modes & FI_MR_LOCAL) != 0),
        descriptors_(descriptors),
        memory_(memory),
        raw_keys_(raw_keys) {}

  // Whether the terms have such rules without FI_MR_HMEM.
  static bool has_any(const Terms& terms);

  // -FI_EMSGSIZE for more bytes than the contract's provider takes, else 0.
  int check_size(std::size_t length, bool injected) const;

  // The first buffer that must not be used so, or the first remote range with a key that is not
  // mapped; of reason 0 if there is none. Fills in `devices` then.
  RefusedAccess check(std::initializer_list<LocalUse> local, std::span<const RemoteRange> remote,
                      DeviceBuffers& devices) const;

 private:
  RefusedAccess check_buffers(std::initializer_list<LocalUse> uses, DeviceBuffers& devices) const;
  RefusedAccess check_buffer(const LocalUse& use, std::size_t number,
                             memory::DeviceMemory& device) const;
  RefusedAccess check_keys(std::span<const RemoteRange> remote) const;

  const std::size_t max_message_size_;
  const std::size_t max_inject_size_;
  const bool all_described_;  // FI_MR_LOCAL
  LocalDescriptors* const descriptors_;
  const DomainMemory* const memory_;
  const RawKeys* const raw_keys_;
};

}  // namespace weft::fabric
