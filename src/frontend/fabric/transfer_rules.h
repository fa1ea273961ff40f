// SPDX-License-Identifier: BSD-2-Clause
// What does the registration contract of a domain ask of its transfers?
#pragma once

#include <cstddef>
#include <initializer_list>
#include <span>

#include "base/refused_access.h"
#include "base/types.h"
#include "local_descriptors.h"
#include "raw_keys.h"
#include "terms.h"

namespace weft::fabric {

// The descriptors of a call's SGEs, in their order, or null.
using Descriptors = void* const*;

// Local buffers and the right that an operation needs on them.
struct LocalUse {
  std::span<const LocalRange> buffers;
  Descriptors descriptors;
  Access need;
};

// Rules beyond those of Weft's own offer. Any thread.
class TransferRules {
 public:
  // `descriptors` and `raw_keys` outlive the object; null: they are not looked at.
  TransferRules(const Terms& terms, LocalDescriptors* descriptors, const RawKeys* raw_keys)
      : max_message_size_(terms.max_message_size),
        max_inject_size_(terms.max_inject_size),
        descriptors_(descriptors),
        raw_keys_(raw_keys) {}

  // Whether the terms have such rules.
  static bool has_any(const Terms& terms);

  // -FI_EMSGSIZE for more bytes than the contract's provider takes, else 0.
  int check_size(std::size_t length, bool injected) const;

  // The first buffer that must not be used so, or the first remote range with a key that is not
  // mapped; of reason 0 if there is none.
  RefusedAccess check(std::initializer_list<LocalUse> local,
                      std::span<const RemoteRange> remote) const;

 private:
  RefusedAccess check_buffers(std::initializer_list<LocalUse> uses) const;
  RefusedAccess check_keys(std::span<const RemoteRange> remote) const;

  const std::size_t max_message_size_;
  const std::size_t max_inject_size_;
  LocalDescriptors* const descriptors_;
  const RawKeys* const raw_keys_;
};

}  // namespace weft::fabric
