// SPDX-License-Identifier: BSD-2-Clause
// Which sentence explains a refused access with its numbers?
#pragma once

#include <cstddef>
#include <string>

#include "base/refused_access.h"
#include "base/types.h"

namespace weft::memory {

// No explanation has more bytes than that.
inline constexpr std::size_t kLongestExplanation = 255;

// The words for accesses of the peers of libfabric programs, as `operation` below.
inline constexpr const char* kAtomicOperation = "atomic operation";
inline const char* word_for(Access need) { return need == Access::kRemoteWrite ? "write" : "read"; }

// Which key, what was asked for, why it was refused, and where the region begins and ends if that
// is known: "key 0x2a: write of 64 bytes at 0x1000 ends 8 bytes past the region (region: ...)".
// `key_name` is what the interface calls the key, `operation` the operation: a few letters each.
std::string explain(const RefusedAccess& refused, const char* key_name, const char* operation);

}  // namespace weft::memory
