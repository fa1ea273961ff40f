// SPDX-License-Identifier: BSD-2-Clause
// How much is in use of what peers may cost: memory, sockets, threads.
#pragma once

namespace weft::bench {

struct ResourceUse {
  double private_bytes;  // anonymous pages of this process that are resident
  double shared_bytes;   // pages of files in /dev/shm, of all processes
  double sockets;        // that this process has open
  double threads;        // of this process
};

// What is in use now. Memory of the kernel, such as socket buffers, is in none of the numbers.
ResourceUse resources_in_use();

}  // namespace weft::bench
