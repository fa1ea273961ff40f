// SPDX-License-Identifier: BSD-2-Clause
// How does one process make another's stores visible without the other paying for it?
#include "os/barrier.h"

#include <linux/membarrier.h>
#include <sys/single_threaded.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>

namespace weft::os {
namespace {

int membarrier(int command) { return static_cast<int>(::syscall(SYS_membarrier, command, 0, 0)); }

// The kernel is asked once, or by several threads at a time: none waits for another, which might
// not exist in a forked child.
template <bool (*ask)()>
bool answer() {
  enum class Known : signed char { kNothing, kNo, kYes };
  static constinit std::atomic<Known> known{Known::kNothing};
  if (known.load(std::memory_order_relaxed) == Known::kNothing)
    known.store(ask() ? Known::kYes : Known::kNo, std::memory_order_relaxed);
  return known.load(std::memory_order_relaxed) == Known::kYes;
}

bool raises_for_all() {
  const int commands = membarrier(MEMBARRIER_CMD_QUERY);
  return commands > 0 && (commands & MEMBARRIER_CMD_GLOBAL_EXPEDITED) != 0;
}

bool register_for_all() {
  return can_raise_remote_barriers() && membarrier(MEMBARRIER_CMD_REGISTER_GLOBAL_EXPEDITED) == 0;
}

bool register_process() { return membarrier(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED) == 0; }

}  // namespace

bool heeds_remote_barriers() { return answer<register_for_all>(); }
bool can_raise_remote_barriers() { return answer<raises_for_all>(); }
bool can_raise_process_barriers() { return answer<register_process>(); }

void register_for_barriers_early() {
  if (__libc_single_threaded == 0) return;
  heeds_remote_barriers();
  can_raise_process_barriers();
}

void process_barrier() {
  std::atomic_thread_fence(std::memory_order_seq_cst);
  membarrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED);
}

void remote_barrier() {
  std::atomic_thread_fence(std::memory_order_seq_cst);
  if (can_raise_remote_barriers()) membarrier(MEMBARRIER_CMD_GLOBAL_EXPEDITED);
}

}  // namespace weft::os
