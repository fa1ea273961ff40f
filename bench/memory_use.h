// SPDX-License-Identifier: BSD-2-Clause
// How much memory is in use: by this process alone, and by all in shared memory files.
#pragma once

namespace weft::bench {

struct MemoryUse {
  double private_bytes;  // anonymous pages of this process that are resident
  double shared_bytes;   // pages of files in /dev/shm, whoever made them
};

// What is in use now. Memory of the kernel, such as socket buffers, is in neither number.
MemoryUse memory_in_use();

}  // namespace weft::bench
