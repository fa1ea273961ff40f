// SPDX-License-Identifier: BSD-2-Clause
// Does this processor have transactions?
#include "os/all_or_nothing.h"

#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace weft::os {

bool has_transactions() {
#if defined(__x86_64__)
  // __builtin_cpu_supports() of clang does not know the name.
  unsigned features = 0;
  unsigned others = 0;
  return __get_cpuid_count(7, 0, &others, &features, &others, &others) != 0 &&
         (features & bit_RTM) != 0;
#else
  return false;
#endif
}

void forgo_transactions() { detail::uses_transactions = false; }

}  // namespace weft::os
