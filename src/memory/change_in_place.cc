// SPDX-License-Identifier: BSD-2-Clause
// How does a process carry out an atomic operation on its own memory, which may have gone?
#include "memory/change_in_place.h"

#include <cstring>

#include "memory/atomic_kernels.h"
#include "memory/table_layout.h"
#include "os/all_or_nothing.h"
#include "os/process_memory.h"

namespace weft::memory {
namespace {

// One answer of the kernel holds for one page.
bool may_touch(const LocalRange& here) {
  const auto first = reinterpret_cast<std::uintptr_t>(here.base);
  const bool one_page = first / kStripePage == (first + here.length - 1) / kStripePage;
  return one_page && os::can_write(here.base);
}

void change(const AtomicAction& action, const LocalRange& here, const std::byte* operands,
            std::byte* fetched) {
  std::byte initial[kMaxAtomicBytes];
  std::byte value[kMaxAtomicBytes];
  std::memcpy(initial, here.base, here.length);
  std::memcpy(value, initial, here.length);
  apply(action, value, operands, operands + (action.has_operand() ? here.length : 0), here.length);
  if (std::memcmp(value, initial, here.length) != 0) std::memcpy(here.base, value, here.length);
  if (fetched != nullptr) std::memcpy(fetched, initial, here.length);
}

}  // namespace

// One instruction of the processor: atomic also for code that changes the memory without Weft.
bool change_in_place(const AtomicAction& action, const LocalRange& here, const std::byte* operands,
                     std::byte* fetched) {
  const auto work = [&] { change(action, here, operands, fetched); };
  if (os::all_or_nothing(work)) return true;
  if (!may_touch(here)) return false;
  work();
  return true;
}

}  // namespace weft::memory
