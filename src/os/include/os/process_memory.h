// SPDX-License-Identifier: BSD-2-Clause
// How is memory of another process read and written without that process taking part?
#pragma once

#include <sys/types.h>

#include <span>

#include "base/result.h"
#include "base/types.h"

namespace weft::os {

// Which way copy_process_memory() moves bytes.
enum class CopyDirection { kFromProcess, kToProcess };

// Copies between `local` and `remote`, which lies in process `pid` (this process is allowed, too);
// both lists must have the same total length, and at most 64 entries each. Returns 0 or an errno:
// EFAULT when an address on either side is not mapped (some bytes before it may have been copied),
// ESRCH when the process is gone, EPERM when it may not be reached (process_vm_readv(2)).
int copy_process_memory(pid_t pid, CopyDirection direction, std::span<const LocalRange> local,
                        std::span<const LocalRange> remote);

// Why this process may not read and write memory of others, for a sentence; null if it may, as far
// as it can tell by its own memory. Filters of system calls (seccomp(2)) forbid that.
const char* why_no_process_memory();

// True when all of that memory of this process is mapped, with whatever protection. The kernel
// looks at mappings, not at pages.
bool is_mapped(const void* base, std::size_t length);

// True when all pages of that memory of this process are there and may be read, or written to, just
// now; those that had not been touched are made. False where they are not, and where the kernel
// (before Linux 5.14, or for the memory of devices) does not say. One question for many pages.
bool have_pages(const void* base, std::size_t length, CopyDirection direction);

// The number of this process.
pid_t process_id();

// Lets processes of the same user reach this one's memory where the Yama security module would keep
// them out (kernel.yama.ptrace_scope = 1): by PR_SET_PTRACER_ANY, so any of them may attach to this
// process, as on a system without Yama. Does nothing elsewhere.
void allow_memory_access_by_peers();

}  // namespace weft::os
