// SPDX-License-Identifier: BSD-2-Clause
// Does this processor have transactions?
#include "os/all_or_nothing.h"

namespace weft::os {

bool has_transactions() {
#if defined(__x86_64__)
  __builtin_cpu_init();
  return __builtin_cpu_supports("rtm") != 0;
#else
  return false;
#endif
}

void forgo_transactions() { detail::uses_transactions = false; }

}  // namespace weft::os
